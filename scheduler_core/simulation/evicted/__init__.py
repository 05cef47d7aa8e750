"""What happens to an evicted pod: whether its budget allows the eviction, how it is replaced, and whether it returns to
the drained node."""
