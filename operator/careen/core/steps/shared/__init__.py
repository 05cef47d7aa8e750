"""Code that several steps share."""
