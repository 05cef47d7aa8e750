"""Simulates drains and roll-outs on a frozen snapshot. `forecast.py` defines the result and needs no numpy; `drain.py`
computes the result."""
