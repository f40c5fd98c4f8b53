"""`kerf explain`: one module for each kind of object."""
