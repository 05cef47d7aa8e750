"""The parts of a drain's course, each with one responsibility; `courses.py` combines them."""
