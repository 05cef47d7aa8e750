"""Messages to people that depend on more than one decision, and the Alertmanager silence for the node's alerts while
the node reboots."""
