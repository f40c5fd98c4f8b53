"""Kerf's fit, the in-memory scheduler and the real kube-scheduler, asked the same of the same random clusters."""
