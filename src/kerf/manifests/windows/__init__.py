"""CapacityWindow: its form, and how it is read and written."""
