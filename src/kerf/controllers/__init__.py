"""When, and with what effect: level-based controllers over ports. What to do is decided in `engine`."""
