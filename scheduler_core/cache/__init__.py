"""Keeps a cluster in memory and updates it with lists and watches."""
