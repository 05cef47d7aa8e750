"""Frozen values of the API objects that scheduling reads, parsed once."""
