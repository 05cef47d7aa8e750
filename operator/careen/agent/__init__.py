"""The agent's shell: it reads the clock, does I/O and runs kopf. `core/` makes the decisions."""
