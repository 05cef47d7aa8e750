"""Clients of servers other than the API server, each with a deadline; a server that does not answer is *unknown*."""
