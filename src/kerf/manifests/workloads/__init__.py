"""Workloads: how they are read, and the pods that they make."""
