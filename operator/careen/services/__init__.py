"""Clients of servers other than the API server. Each has a deadline; if a server does not answer, the result is
*unknown*."""
