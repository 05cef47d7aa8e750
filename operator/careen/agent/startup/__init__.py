"""The start of an agent: finds the lock's DaemonSet, reads the settings and the recorded claim, and builds the agent's
parts."""
