"""What can be bought: types as pools offer them, overlays, prices and caps."""
