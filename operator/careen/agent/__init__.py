"""The shell of an agent: where time, I/O and kopf live. Decisions are made in `core/`."""
