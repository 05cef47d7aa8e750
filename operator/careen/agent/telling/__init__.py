"""Messages to people that do not follow from one decision, and the silence of alerts while the node reboots."""
