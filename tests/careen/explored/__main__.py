"""`make explore`: explores the fleets of `rows.py` and prints the results."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.careen.explored.rows import explored, rows

_SIDE_BY_SIDE = 2
"""An exploration with wide bounds needs gigabytes of memory."""


def main() -> int:
    print(
        "| bounds | states | steps | decisions | final states | seconds |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    code = 0
    with ProcessPoolExecutor(_SIDE_BY_SIDE, multiprocessing.get_context("spawn")) as pool:
        for bounds, (found, seconds) in zip(rows(), pool.map(explored, rows()), strict=True):
            numbers = (found.states, found.steps, found.decisions, found.ends, round(seconds))
            print(f"| {bounds} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)
            if found.wrong:
                print(found.wrong, flush=True)
                code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
