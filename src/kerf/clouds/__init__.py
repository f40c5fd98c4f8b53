"""Cloud providers, found by the entry point group `kerf.clouds`; each is one file or folder."""
