"""People's requests for nodes, and messages to people."""
