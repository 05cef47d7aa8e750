"""Messages to people that need more than one decision, and the silence of alerts while the node reboots."""
