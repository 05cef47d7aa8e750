"""The parts of a simulated roll-out. `rollout.py` uses them."""
