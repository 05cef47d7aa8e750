"""How each phase decides, one file per phase. No I/O; `decide.py` picks the file."""
