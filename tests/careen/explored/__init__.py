"""Explores every possible sequence of steps of a small fleet within given bounds. Decisions and lock are careen's
production code."""
