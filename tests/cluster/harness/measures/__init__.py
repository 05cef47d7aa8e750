"""Measurements of a roll-out and of drains on a real control plane."""
