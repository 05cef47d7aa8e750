"""The node's host: whether it needs a reboot, which boot it runs, and how the agent reboots it."""
