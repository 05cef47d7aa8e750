"""Measurements of a story."""
