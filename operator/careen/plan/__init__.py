"""A roll-out planned beforehand by the agents' own rules. Only `careen plan` and the reports use it."""
