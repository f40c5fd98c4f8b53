"""HAMi: its admission, its scheduler's choice of cards, its records."""
