"""CapacityWindows: their phases, who may come, what they keep warm, what their status says."""
