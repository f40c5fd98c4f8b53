"""Where pods may run: targets and their rooms, devices, one trial of all nodes, whatever they cost."""
