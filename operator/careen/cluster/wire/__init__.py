"""How a request reaches the API server, what may go wrong, and when it is sent again."""
