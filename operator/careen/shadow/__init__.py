"""Compares each binding of kube-scheduler with the node that scheduler_core would have chosen right before it."""
