"""The agent's settings: the list of all settings, how people write values, the sources of values, and how the agent
applies a change."""
