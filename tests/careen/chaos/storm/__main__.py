"""Plays storms (random faults and events in a simulated fleet): `python -m tests.careen.chaos.storm --seeds 500` plays
500 storms. `--seed N` plays one storm and prints its events. If the storm broke a rule, the program removes events that
are not needed to break this rule."""

from __future__ import annotations

import sys

from tests.careen.chaos.storm.many import main

if __name__ == "__main__":
    sys.exit(main())
