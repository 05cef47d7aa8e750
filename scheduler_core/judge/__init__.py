"""Recorded cases: a cluster and pods in a JSON line, the scheduling decisions in another."""
