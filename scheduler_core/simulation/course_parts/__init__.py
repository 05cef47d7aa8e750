"""The parts of a course of a drain, each of one idea; `courses.py` puts them together."""
