"""`kerf run`: the replica and what it serves."""
