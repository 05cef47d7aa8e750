"""The agent's settings: the tree of all settings, how values are written, where values come from, and what a change
does."""
