"""`kerf advise`: one module for each sub-command."""
