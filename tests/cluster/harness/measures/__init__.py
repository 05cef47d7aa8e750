"""What a story is measured by."""
