"""A cluster in memory that follows the events of watches."""
