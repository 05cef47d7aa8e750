"""What-if simulations: drains on a frozen snapshot. `forecast.py` has the result and needs no numpy; `drain.py`
computes it."""
