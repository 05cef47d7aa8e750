"""What happens to an evicted pod: the budget's decision, the replacement, the return to the drained node."""
