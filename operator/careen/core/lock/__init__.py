"""The lock: its content, who is next, and which claims have no holder."""
