"""The forecast of one drain: made in a child process, kept, and compared with what happened."""
