"""The agent's outer layer: clock, I/O and kopf. `careen.core` makes the decisions."""
