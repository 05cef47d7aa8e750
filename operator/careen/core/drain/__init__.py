"""The rules for which pods a drain moves, and which forecasts forbid the drain."""
