"""The placed pods of a snapshot, and the counts made over them."""
