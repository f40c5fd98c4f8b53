"""NVIDIA's device plugin and MIG manager: whole cards, time-slicing, MPS, MIG."""
