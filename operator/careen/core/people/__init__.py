"""Requests of people, and messages to them."""
