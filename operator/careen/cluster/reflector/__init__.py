"""Lists and watches: what keeps a cluster in memory as the API server has it. Only `careen shadow` uses it."""
