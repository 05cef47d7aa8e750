"""The placed pods of a snapshot, and counts over them."""
