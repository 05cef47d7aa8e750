"""The parts of a simulated roll-out, each of one idea; `rollout.py` puts them together."""
