"""The pods on the nodes of a snapshot, and the counts of these pods."""
