"""Pods: how they are read from documents and from the API."""
