"""API objects (JSON) to the model and back. No other package uses JSON field names."""
