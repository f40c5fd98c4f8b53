"""A provider that acts machines out as Nodes of a real API."""
