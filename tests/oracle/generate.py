"""Prints scheduling cases, one JSON object per line: generate.py SEED COUNT [LARGE_SIZE...]."""

from __future__ import annotations

import json
import sys

from tests.oracle.casegen.cases import case, large_case


def main() -> None:
    """Prints small cases first, then one large case for each requested size."""
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(json.dumps(case(seed, number), separators=(",", ":")))
    for number, size in enumerate(sys.argv[3:]):
        print(json.dumps(large_case(seed, number, int(size)), separators=(",", ":")))


if __name__ == "__main__":
    main()
