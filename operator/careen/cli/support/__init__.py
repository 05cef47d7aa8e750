"""What several commands share: options, connection, progress."""
