"""Traces of real clusters, read as pods that come and end."""
