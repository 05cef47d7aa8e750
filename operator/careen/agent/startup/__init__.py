"""The start of an agent: the lock's DaemonSet, the settings, a recorded claim, and the composition of the agent's
parts."""
