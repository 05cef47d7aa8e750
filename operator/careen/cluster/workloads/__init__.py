"""Reads whether workloads are as healthy as before a drain, and what still ties evicted pods to their node."""
