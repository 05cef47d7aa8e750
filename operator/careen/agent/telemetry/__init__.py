"""An agent's telemetry: logs, metrics, and the port for both probes."""
