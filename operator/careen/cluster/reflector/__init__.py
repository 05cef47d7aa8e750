"""Keeps a copy of the cluster in memory, and updates it with lists and watches. Only `careen shadow` uses it."""
