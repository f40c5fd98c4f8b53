"""Questions about a cluster that no decision depends on: sizes, use, calendars."""
