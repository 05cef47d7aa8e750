"""The lock: its content, its line, who may take a claim, and which claims are overdue or stale."""
