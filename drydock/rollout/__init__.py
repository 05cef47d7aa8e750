"""The demo: a sample cluster, one roll-out over it, and what people see of it."""
