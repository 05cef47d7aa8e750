"""Simulated machines, their kubelets and agents, and what disturbs them."""
