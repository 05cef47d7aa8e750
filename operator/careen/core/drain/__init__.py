"""Which pods a drain moves, and which forecasts forbid it."""
