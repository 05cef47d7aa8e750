"""The start of an agent: finds the lock's DaemonSet, the settings and a recorded claim, and builds the agent's
parts."""
