"""The steps: functions that decide what a node's agent does, one file per phase of the node, without I/O. `decide.py`
calls the step of the node's phase."""
