"""Requests on the scheduler's own event loop."""
