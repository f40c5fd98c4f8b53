"""What can be bought: types as pools offer them, offerings, prices and caps."""
