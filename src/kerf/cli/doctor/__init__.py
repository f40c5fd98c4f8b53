"""`kerf doctor`: what is ready for Kerf, and what to do about the rest."""
