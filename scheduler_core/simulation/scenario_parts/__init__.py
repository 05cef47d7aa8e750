"""The parts of one scenario of a drain (a possible sequence of events): displaced pods, their queue, and rounds of
evictions. `scenarios.py` uses these parts."""
