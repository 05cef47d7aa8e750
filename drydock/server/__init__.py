"""An API server in memory: objects, verbs, watches, evictions, faults."""
