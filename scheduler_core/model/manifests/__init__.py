"""API objects to the model and back; the only package that uses JSON field names."""
