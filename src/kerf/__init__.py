"""Kerf: a node autoscaler for Kubernetes that understands GPU slices."""

__version__ = "0.1.0"
