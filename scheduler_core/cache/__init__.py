"""A cluster that is kept in memory and follows the events of watches."""
