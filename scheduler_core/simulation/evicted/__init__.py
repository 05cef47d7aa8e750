"""What becomes of one evicted pod: the budget's answer, its replacement, its return."""
