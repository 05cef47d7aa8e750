"""An agent's telemetry: logs, metrics, and the port for metrics and probes."""
