"""Messages to people that no single decision knows of, and the silence of alerts while the node reboots."""
