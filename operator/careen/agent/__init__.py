"""The agent's outer layer: it reads the clock, does I/O and runs kopf. The package `careen.core` makes the
decisions."""
