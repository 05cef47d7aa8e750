"""The inputs of decisions: what the agent observed, its record on the Node, what the agent's process remembers, the
settings, and the names of keys and codes."""
