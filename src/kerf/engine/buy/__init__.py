"""Which nodes to buy: loads, the search for the cheapest, limits, launches."""
