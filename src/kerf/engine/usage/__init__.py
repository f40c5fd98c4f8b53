"""What pods were seen to use, and what follows from it: for advice and conditions, never for a placement."""
