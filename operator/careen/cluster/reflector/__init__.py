"""Keeps a copy of the cluster in memory, up to date by lists and watches. Only `careen shadow` uses it."""
