"""The parts of one course of a drain: displaced pods, their queue, and rounds of evictions. `courses.py` uses them."""
