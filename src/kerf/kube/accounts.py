"""Service accounts beside the one that Kerf runs as. It imports nothing, because help shows them."""

ACCOUNT = "kerf-decisions"
"""The service account for whose token a person asks, where Kerf is called `kerf`; the chart lets it get `PATH`."""
