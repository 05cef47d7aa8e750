"""The decisions of each phase, one file per phase, without I/O. `decide.py` calls the step of the node's phase."""
