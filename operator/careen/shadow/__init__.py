"""Compares each binding of kube-scheduler with what scheduler_core would have said a moment before it."""
