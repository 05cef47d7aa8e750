"""The demo: a sample cluster, one roll-out, and its display."""
