"""Learns from bindings where in its node list kube-scheduler starts its next search."""
