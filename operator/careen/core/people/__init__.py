"""People's requests for nodes, and the messages that careen sends to people."""
