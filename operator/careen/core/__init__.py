"""The agent's decisions, as pure functions. They use no client, no kopf, no clock and no environment. Every fact
arrives in an `Observation`."""
