"""Instances of a test cloud as Nodes of the test control plane, by nothing but what their user data says."""
