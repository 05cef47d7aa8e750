"""Requests to servers other than the API server, and their bounds."""
