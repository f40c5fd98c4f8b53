"""`kerf verify`: a printed plan, put to the rules that every plan of Kerf passes before it is printed."""
