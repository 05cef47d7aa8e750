"""The agent's shell: clock, I/O and kopf. `core/` makes the decisions."""
