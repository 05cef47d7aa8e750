"""Messages to people that one decision alone cannot trigger, and the Alertmanager silence for the node's alerts while
the node reboots."""
