"""What an agent shows of itself: logs, metrics, and the port for both probes."""
