"""A small fleet whose every sequence of steps can be explored. Decisions and lock are production's."""
