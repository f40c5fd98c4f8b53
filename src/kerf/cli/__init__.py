"""The command line: the only room that puts all others together, and that no room imports."""
