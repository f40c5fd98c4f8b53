"""The forms of what a command prints, as kubectl has them: names, JSONPath, columns of one's own, order."""
