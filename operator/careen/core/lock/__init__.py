"""The lock: its content, the order of the waiting nodes, and claims without a holder."""
