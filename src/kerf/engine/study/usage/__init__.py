"""What pods and nodes were seen to use."""
