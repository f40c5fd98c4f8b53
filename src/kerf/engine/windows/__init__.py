"""CapacityWindows: when they are open, who may come in, what they keep ready, what that comes to."""
