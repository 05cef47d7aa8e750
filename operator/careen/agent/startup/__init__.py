"""The start of an agent: finds the DaemonSet that carries the lock, the settings, and the claim that the Node's
progress annotation may contain, and builds the agent's parts."""
