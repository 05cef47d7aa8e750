"""The steps: functions that decide what a node's agent does. Each phase of the node has a file with its step. The steps
do no I/O. `decide.py` calls the step of the node's phase."""
