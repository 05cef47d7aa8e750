"""A simulated roll-out for people and programs. `page/` draws it."""
