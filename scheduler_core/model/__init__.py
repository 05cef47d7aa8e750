"""Frozen values of the API objects that scheduling looks at, parsed once at the border."""
