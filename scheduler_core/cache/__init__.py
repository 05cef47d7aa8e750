"""Keeps a cluster in memory, and updates this copy with lists and watch events from the API server."""
