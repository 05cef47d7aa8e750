"""Simulated hosts, their kubelets, the agents' processes, and disturbances."""
