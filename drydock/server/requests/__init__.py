"""The parts of a request: path, query, body, patch."""
