"""The lock, an annotation on careen's DaemonSet: its content, the order of the waiting nodes, and claims without a
holder."""
