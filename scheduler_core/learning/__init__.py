"""Learns from the bindings of a scheduler at which node its next search will start."""
