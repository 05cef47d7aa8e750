"""Requests to the API server: transport, errors and retries."""
