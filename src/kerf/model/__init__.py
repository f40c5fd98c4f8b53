"""Nouns: frozen, hashable values without I/O, clock or randomness."""
