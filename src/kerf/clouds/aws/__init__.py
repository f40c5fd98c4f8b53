"""EC2 as a cloud of Kerf: EC2NodeClasses, launches by CreateFleet, prices, interruptions."""
