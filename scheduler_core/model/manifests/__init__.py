"""API objects to the model and back; the only place that knows JSON field names."""
