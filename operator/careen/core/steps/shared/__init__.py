"""What several steps do alike."""
