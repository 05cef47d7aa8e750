"""Clients of servers other than the API server. Each has a deadline; without an answer in time the result is
*unknown*."""
