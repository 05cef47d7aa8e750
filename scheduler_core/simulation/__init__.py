"""Simulates drains and roll-outs on a frozen snapshot of the cluster. `forecast.py` defines the result of a drain and
needs no numpy; `drain.py` computes this result."""
