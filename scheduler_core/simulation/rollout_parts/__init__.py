"""The parts of a simulated roll-out, each with one responsibility; `rollout.py` combines them."""
