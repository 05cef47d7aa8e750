"""Clients of servers other than the API server. Each client has a deadline. If the server does not answer in time, the
result is *unknown*."""
