"""Controllers of NodeClaims and their nodes."""
