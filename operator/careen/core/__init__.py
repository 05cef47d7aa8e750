"""The agent's decisions, as pure functions: no client, no kopf, no clock, no environment. Every fact arrives in an
`Observation`."""
