"""A copy of the cluster in memory, kept up to date with lists and watches. Only `careen shadow` uses it."""
