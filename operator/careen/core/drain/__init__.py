"""Which pods a drain moves, and what in a forecast objects to it."""
