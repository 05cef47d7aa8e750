"""Plays storms (random faults and events in a simulated fleet): `python -m tests.careen.chaos.storm --seeds 500` plays
500 storms. `--seed N` plays one storm, prints its story, and shortens the story if a rule broke."""

from __future__ import annotations

import sys

from tests.careen.chaos.storm.many import main

if __name__ == "__main__":
    sys.exit(main())
