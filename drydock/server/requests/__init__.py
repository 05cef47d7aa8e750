"""What a request asks for: path, query, body, patch."""
