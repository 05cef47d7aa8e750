"""Explores everything that can happen in a small fleet within given bounds. Decisions and lock are careen's production
code."""
