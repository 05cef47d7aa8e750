"""The node's host: what it asks for, which boot it is in, and how it is told to reboot."""
