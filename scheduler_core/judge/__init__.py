"""Decides recorded cases: reads a cluster and pods from a JSON line, and writes a line with the scheduling
decisions."""
