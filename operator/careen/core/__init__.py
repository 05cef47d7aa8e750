"""The agent's decisions, as pure functions. The functions use no Kubernetes client, no kopf, no clock and no
environment variables. Every fact arrives in an `Observation`."""
