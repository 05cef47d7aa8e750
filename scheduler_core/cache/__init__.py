"""Keeps a cluster in memory that follows lists and watches."""
