"""What the commands share: options, connection, progress."""
