"""The parts of one scenario of a drain: displaced pods, their queue, and rounds of evictions. `scenarios.py` uses
them."""
