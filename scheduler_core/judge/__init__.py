"""Cases of the real scheduler, judged: a JSON line in, an answer line out."""
