"""What would happen: drains simulated on a frozen snapshot. `forecast.py` holds the answer and needs no numpy;
`drain.py` computes it."""
