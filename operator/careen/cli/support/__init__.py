"""Code that the commands share: options, connection, progress."""
