"""CapacityWindows: their phases, who may come, and what their status says."""
