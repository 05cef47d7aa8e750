"""Writes reports in formats for other programs."""
