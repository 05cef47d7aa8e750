"""A snapshot of a cluster that never changes: the nodes with their pods, and the other objects that scheduling
reads."""
