"""Messages to people about more than one decision, and the silence of alerts while the node reboots."""
