"""What happens to an evicted pod: whether its disruption budget allows the eviction, how the pod is replaced, and
whether the replacement must return to the drained node."""
