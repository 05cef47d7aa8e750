"""Judges recorded cases: a JSON line in, an answer line out."""
