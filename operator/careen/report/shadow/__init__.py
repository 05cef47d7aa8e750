"""The reports of `careen shadow`."""
