"""Simulated machines, their kubelets and agents, and disturbances."""
