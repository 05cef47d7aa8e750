"""The node's host: its need, its boot, and how the agent reboots it."""
