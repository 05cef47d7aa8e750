"""Simulates a roll-out under the agents' own rules. Only `careen plan` and the reports use this package."""
