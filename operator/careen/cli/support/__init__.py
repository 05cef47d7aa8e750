"""Shared parts of the commands: options, connection, progress."""
