"""Verbs: pure functions of a snapshot and a market. What they decide, `controllers` carries out."""
