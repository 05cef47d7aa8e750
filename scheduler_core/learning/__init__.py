"""Estimates where in its node list kube-scheduler will start its next search. The estimate uses the nodes to which the
scheduler bound earlier pods."""
