"""Learns from a scheduler's bindings where its next search starts."""
