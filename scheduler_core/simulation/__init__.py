"""Drains and roll-outs simulated on a frozen snapshot. `forecast.py` defines a drain's result and needs no numpy;
`drain.py` computes it."""
