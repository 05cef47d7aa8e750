"""Writes what the scheduler of another release answers to the cases of tests/conformance.

    python -m tests.oracle.release_goldens 1.34 --oracle .cache/oracle-1.34

Cases with device claims are left out before 1.34, and a case that the release's oracle cannot judge in any release.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle import judges

CONFORMANCE = Path(__file__).parents[1] / "conformance"
COUNT = 240


def cases_of(version: str) -> Iterator[dict[str, Any]]:
    """The cases as the library and the oracle of this release get them."""
    lines = gzip.decompress((CONFORMANCE / "cases.jsonl.gz").read_bytes()).decode().splitlines()[:COUNT]
    for case in map(json.loads, lines):
        if is_of(version, case):
            yield {**case, "kubeVersion": version}


def is_of(version: str, case: dict[str, Any]) -> bool:
    """Whether the release's oracle can judge the case.

    Until 1.33 it has no devices, and VolumeBinding's score of 1.37.2 panics at a capacity that has only a
    maximumVolumeSize.
    """
    objects = case["objects"]
    if version in ("1.32", "1.33"):
        return not any(o["apiVersion"].startswith("resource.k8s.io") for o in objects)
    return version != "1.37" or not any(o["kind"] == "CSIStorageCapacity" and "capacity" not in o for o in objects)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--oracle", required=True)
    options = parser.parse_args()
    found = judges.ask((options.oracle, "judge", "--lenient"), cases_of(options.version))
    lines = (json.dumps({"id": name, "answers": each}, separators=(",", ":")) for name, each in found.items() if each)
    out = CONFORMANCE / "releases" / f"{options.version}.jsonl.gz"
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


if __name__ == "__main__":
    main()
