"""The agent's settings: the list of all, how people write values, where values come from, and how a change takes
effect."""
