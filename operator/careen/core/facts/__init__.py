"""The inputs of decisions: what the agent observed, its record on the Node, what its process remembers, the settings,
and the names of keys and codes."""
