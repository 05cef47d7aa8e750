"""Estimates at which position of its node list kube-scheduler starts its next search, from the nodes to which it bound
earlier pods."""
