"""`make explore`: goes through the rows and prints what was seen."""

from __future__ import annotations

import sys
import time

from tests.careen.explored.fleet import SmallFleet
from tests.careen.explored.rows import rows
from tests.careen.explored.search import explore


def main() -> int:
    """Prints a line for each row, and the story of the first broken rule. 1 if one broke."""
    print("| bounds | states | steps | decisions | ways home | seconds |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for bounds in rows():
        began = time.process_time()
        found = explore(SmallFleet(bounds))
        numbers = (found.states, found.steps, found.decisions, found.ends, round(time.process_time() - began))
        print(f"| {bounds} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)
        if found.broken:
            print(found.told())
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
