"""`kerf lint`: the command, its output and its fixes."""
