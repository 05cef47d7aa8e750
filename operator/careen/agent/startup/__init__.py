"""Starts an agent: finds the DaemonSet that carries the lock, reads the settings, and reads from the Node's progress
annotation whether the node has a claim. Then builds the agent's parts."""
