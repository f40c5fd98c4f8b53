"""Where pods may run: targets and their rooms, devices, one trial of all nodes. It knows nothing of prices."""
