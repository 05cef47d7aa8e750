"""What happens to an evicted pod: whether its disruption budget allows it, how it is replaced, and whether the
replacement must return to the drained node."""
