"""Compares scheduler_core with the oracle (a program with kube-scheduler's own code) on freshly generated cases. Exits
with 1 on any difference."""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from tests.oracle import judges
from tests.oracle.casegen.cases import case, large_case
from tests.oracle.casegen.pointed import pointed_case
from tests.oracle.comparison import differences, first_difference
from tests.oracle.minimise import minimise
from tests.oracle.release_goldens import is_of


def main() -> int:
    """Generates cases, runs both schedulers on them, and prints the differences. With `--minimise=N`, also prints the
    smallest case for each of the first N differences."""
    options = _options()
    if options.corpus:
        cases = [json.loads(line) for line in _open(options.corpus)]
    else:
        cases = [case(options.seed, number) for number in range(options.cases)]
        cases += [pointed_case(options.seed, number) for number in range(options.pointed)]
        cases += [large_case(options.seed, number, size) for number, size in enumerate(options.large)]
    if options.kube:
        cases = [{**one, "kubeVersion": options.kube} for one in cases if is_of(options.kube, one)]
        if options.kube == "1.37":  # VolumeBinding scores the first that fits, in the order of a Go map
            cases = [one for one in cases if not _has_rival_pools(one)]
    both = judges.start((options.oracle, "judge", "--lenient"), cases), judges.start(judges.OURS, cases)
    want, got = (judges.finish(one) for one in both)
    refused = [one["id"] for one in cases if not want.get(one["id"])]
    if refused:
        print(f"left out, because the oracle refuses them: {len(refused)} cases ({', '.join(refused[:3])} …)")
    cases = [one for one in cases if want.get(one["id"])]
    found = _compare(cases, want, got)
    total = sum(len(one["pods"]) for one in cases)
    wrong = len({(one, pod) for one, pod, _ in found})
    print(
        f"{total - wrong} of {total} decisions identical; differences "
        f"{dict(collections.Counter(field for _, _, field in found))}"
    )
    for name, pod, field in found[: options.show]:
        print(f"{name} {pod}: {field}: {first_difference(want[name][pod], got.get(name, {}).get(pod, {}), field)}")
    for name, pod, field in found[: options.minimise]:
        small = _smallest(options.oracle, next(one for one in cases if one["id"] == name), pod, field)
        print(json.dumps(small))
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--kube", help="the oracle's release, such as 1.34; by default the library's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--pointed", type=int, default=800, help="number of cases about a single topic")
    parser.add_argument("--large", type=int, nargs="*", default=[120, 1000], help="numbers of nodes; one case for each")
    parser.add_argument("--corpus", type=Path, help="take the cases from this file; generate no cases")
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument(
        "--minimise",
        type=int,
        default=0,
        metavar="N",
        help="for each of the first N differences, print the smallest case that still shows the difference",
    )
    return parser.parse_args()


def _has_rival_pools(one: dict[str, Any]) -> bool:
    """Whether a storage class has several storage pools of different sizes."""
    pools = {
        (each["storageClassName"], each.get("capacity"))
        for each in one["objects"]
        if each["kind"] == "CSIStorageCapacity"
    }
    return len({name for name, _ in pools}) < len(pools)


def _open(path: Path) -> Any:
    return gzip.open(path, "rt") if path.suffix == ".gz" else path.open()


def _compare(cases: list[dict[str, Any]], want: dict[str, Any], got: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = []
    for one in cases:
        for pod in one["pods"]:
            ours = got.get(one["id"], {}).get(pod, {})
            found += [(one["id"], pod, field) for field in differences(want[one["id"]][pod], ours)]
    return found


def _smallest(oracle: str, one: dict[str, Any], pod: str, field: str) -> dict[str, Any]:
    def still_differs(batch: list[dict[str, Any]]) -> list[bool]:
        both = judges.start((oracle, "judge", "--lenient"), batch), judges.start(judges.OURS, batch)
        want, got = (judges.finish(started) for started in both)
        return [
            field
            in differences(want.get(b["id"], {}).get(pod, {"error": ""}), got.get(b["id"], {}).get(pod, {"error": ""}))
            for b in batch
        ]

    small = minimise(one, pod, still_differs)
    want, got = judges.ask((oracle, "judge"), [small]), judges.ask(judges.OURS, [small])
    print(
        f"\n{small['id']} {pod}: {field}: "
        f"{first_difference(want[small['id']][pod], got.get(small['id'], {}).get(pod, {}), field)}"
    )
    return small


if __name__ == "__main__":
    sys.exit(main())
