"""Learns from the nodes to which kube-scheduler bound pods at which node of the node list its next search will
start."""
