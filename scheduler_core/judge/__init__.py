"""Judges recorded cases: reads a case from a JSON line and writes a line with the decisions."""
