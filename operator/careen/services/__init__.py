"""Servers other than the API server, each asked with a deadline; one that does not answer is *unknown*."""
