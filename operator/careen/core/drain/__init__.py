"""The rules of a drain: which pods it evicts, and which forecasts forbid it."""
