"""Converts API objects to the model and back. Only this package uses JSON field names."""
