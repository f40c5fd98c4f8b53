"""Pods that take what others leave idle, and give it back when it is needed."""

OPPORTUNISTIC = "kerf.dev/opportunistic"
"""Label, with the value `true`, of such pods, and the name of their scheduling gate."""
PRIORITY_CLASS, PRIORITY = "kerf-opportunistic", -100
"""The only PriorityClass that they may have, and its value: below every other, and they preempt no pod."""
