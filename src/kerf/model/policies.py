"""What may be chosen about a plan, by name: for flags, settings and documents. It imports nothing.

`kerf --help` and the completion of a shell need these names and nothing that decides, so they are here and not with
`engine.options`.
"""

COST, FIRST_FIT = "cost", "first-fit"
STRATEGIES = (COST, FIRST_FIT)
"""How nodes are chosen."""
AUTO, RESERVE, PIN, OFF = "auto", "reserve", "pin", "off"
FOLLOWING = (AUTO, RESERVE, PIN, OFF)
"""How schedulers are made to follow a plan."""
RESPECT, IGNORE = "Respect", "Ignore"
PREFERENCES = (RESPECT, IGNORE)
"""Karpenter's PREFERENCE_POLICY."""
STRICT, BEST_EFFORT = "Strict", "BestEffort"
MIN_VALUES = (STRICT, BEST_EFFORT)
"""Karpenter's MIN_VALUES_POLICY."""
BUDGETS = {"1s": 28, "30s": 172}
"""Rounds of prices by about how long they take for 7,000 pods of 120 shapes on 16 types."""
SHORT = "1s"
