"""Karpenter's kinds: their form, and how they are read."""
