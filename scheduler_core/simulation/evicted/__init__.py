"""The result of one eviction: the budget's answer, the replacement, the pod's return."""
