"""`kerf plan`: the command, and its output as JSON and text."""
