"""Checks of the settings as a whole. An agent with contradictory settings refuses to start."""
