"""Programs of this project's own: none of them is in the wheel."""
