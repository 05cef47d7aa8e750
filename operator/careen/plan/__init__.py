"""Plans a roll-out by the agents' own rules. Only `careen plan` and the reports use it."""
