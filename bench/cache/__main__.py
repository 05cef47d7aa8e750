"""Measures what it costs to keep a copy of a cluster in memory, and how fast this copy follows a watch.

    python -m bench.cache [--nodes 5000] [--events 1000000]

The cluster is that of the scheduler's bench, with 30 pods a node, read from its list pages. The events delete one pod
after another, and create, bind and start a new pod each time. Every thousandth pod has a new template with its own
labels. From time to time the bench takes a snapshot and schedules a pod on it.

Times are the processor time of one thread. They include parsing the JSON of the events, but not creating the events.
Memory is that of the whole process, including the bench. "Blocks" are the blocks that Python's allocator has given out,
that is the memory in use.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.scheduler import cluster
from scheduler_core import ClusterCache, Scheduler, Snapshot, Sync, node_from_manifest, pod_from_manifest
from scheduler_core.model.pod import Pod

PARTS = 10
BATCH = 2_000
TEMPLATE_EVERY = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--derived",
        type=int,
        nargs="*",
        default=[100, 1000, 5000],
        help="numbers of nodes of the clusters in the last table",
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-cache")
    given = parser.parse_args()
    print(f"# A cluster in memory\n\n`python -m bench.cache --nodes {given.nodes} --events {given.events}`\n")
    bare = _memory()
    cache, seconds = _loaded(given.folder, given.nodes, given.seed)
    print(f"Memory before the lists are read: {_in_words(bare)}.")
    print(f"Reading the lists takes {seconds:.1f} s of processor time.\n")
    print(
        "\n".join(
            _table(
                ["EVENTS", "PER SECOND", "RSS MIB", "PRIVATE MIB", "BLOCKS", "ASKED", *cache.sizes()],
                _follow(cache, given),
            )
        )
    )
    del cache
    print(
        "\nThe processor time to derive a snapshot from another snapshot, in microseconds. The last two columns\n"
        "include the arrays of all nodes, which the first decision on a snapshot needs:\n"
    )
    print("\n".join(_table(["NODES", *DERIVED], (_derive(given.folder, size, given.seed) for size in given.derived))))


def _table(header: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(name.lower() for name in header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _loaded(folder: Path, nodes: int, seed: int) -> tuple[ClusterCache, float]:
    place = folder / f"{nodes}-{seed}"
    cluster.write(place, nodes=nodes, seed=seed)
    cache, began = ClusterCache(), time.process_time()
    for kind, stem in cluster.LISTS.items():
        cache.apply(Sync(kind, (path.read_bytes() for path in sorted(place.glob(f"{stem}-*.json")))))
    cache.snapshot()
    return cache, time.process_time() - began


def _follow(cache: ClusterCache, given: argparse.Namespace) -> Iterator[list[str]]:
    """Applies `given.events` events in `PARTS` equal parts. A row before the first, and one after each part."""
    asked = _asked(cache)
    yield _row(cache, 0, None, asked)
    lives = _lives(cache.snapshot(), given.nodes, random.Random(given.seed))
    for part in range(1, PARTS + 1):
        seconds, sent = 0.0, 0
        while sent < given.events // PARTS:
            batch = [next(lives) for _ in range(min(BATCH, given.events // PARTS - sent))]
            began = time.process_time()
            for event in batch:
                cache.apply(event)
            cache.snapshot()
            seconds += time.process_time() - began
            sent += len(batch)
        yield _row(cache, part * given.events // PARTS, sent / seconds, _asked(cache))


def _row(cache: ClusterCache, events: int, speed: float | None, asked: float) -> list[str]:
    gc.collect()
    rss, private = _memory()
    written = [
        f"{events:,}",
        "" if speed is None else f"{speed:,.0f}",
        str(rss),
        str(private),
        f"{sys.getallocatedblocks():,}",
        f"{asked * 1000:.0f} ms",
    ]
    return [*written, *(f"{size:,}" for size in cache.sizes().values())]


def _asked(cache: ClusterCache) -> float:
    """The processor seconds of a snapshot and of the scheduling of one pod on it."""
    pod = pod_from_manifest(cluster.pods_to_place(200, 1)[0])
    began = time.process_time()
    Scheduler().schedule(cache.snapshot(), pod)
    return time.process_time() - began


def _lives(snapshot: Snapshot, nodes: int, d: random.Random) -> Iterator[bytes]:
    """Watch events without end: one pod is deleted; another one is created, bound and started."""
    numbers, apps, places = (array("l", column) for column in zip(*map(_who, snapshot.placed_pods), strict=True))
    del snapshot  # it would keep every pod of the beginning
    version, number = 10, len(numbers)
    first = number
    while True:
        at = d.randrange(len(numbers))
        old, app, place = numbers[at], apps[at], d.randrange(nodes)
        for kind, who, node, is_running in (
            ("DELETED", old, places[at], True),
            ("ADDED", number, None, False),
            ("MODIFIED", number, place, False),
            ("MODIFIED", number, place, True),
        ):
            version += 1
            template = f"r{who}" if who >= first and who % TEMPLATE_EVERY == 0 else ""
            yield _line(kind, app, who, node, version, is_running=is_running, template=template)
        numbers[at], places[at] = number, place
        number += 1


def _who(pod: Pod) -> tuple[int, int, int]:
    """The numbers at the ends of the names of the pod, its application and its node."""
    number, app, node = (int(name.rpartition("-")[2]) for name in (pod.name, pod.labels["app"], pod.node_name))
    return number, app, node


def _line(
    kind: str, app: int, number: int, node: int | None, version: int, *, is_running: bool, template: str
) -> bytes:
    pod = cluster.pod_at(node, app=app, suffix=str(number), is_running=is_running)
    pod["metadata"]["resourceVersion"] = str(version)
    if template:
        pod["metadata"]["labels"]["pod-template-hash"] = template
        pod["spec"]["containers"][0]["image"] = f"registry.example/app-{app}:{template}"
    return json.dumps({"type": kind, "object": pod}, separators=(",", ":")).encode()


DERIVED = ("WITH A NODE", "WITHOUT A NODE", "WITH A POD", "WITHOUT A POD", "ADDED, COLUMNS", "REMOVED, COLUMNS")
_TIMES = 50


def _derive(folder: Path, nodes: int, seed: int) -> list[str]:
    cache, _ = _loaded(folder, nodes, seed)
    _asked(cache)  # columns and counts exist and have to be updated
    snapshot = cache.snapshot()
    pod = pod_from_manifest(cluster.pods_to_place(200, 1)[0])
    placed = snapshot.placed_pods[0].key
    more = node_from_manifest(cluster.node_object(nodes, seed=seed))
    derivations: list[Callable[[], object]] = [
        lambda: snapshot.with_node_added(more),
        lambda: snapshot.without_node(cluster.node_name(nodes // 2)),
        lambda: snapshot.with_pods_placed([(pod, cluster.node_name(1))]),
        lambda: snapshot.without_pod(placed),
        lambda: snapshot.with_node_added(more).columns.tree_order,
        lambda: snapshot.without_node(cluster.node_name(nodes // 2)).columns.tree_order,
    ]
    return [f"{nodes:,}", *(f"{_microseconds(each):,.0f}" for each in derivations)]


def _microseconds(derive: Callable[[], object]) -> float:
    derive()
    began = time.process_time()
    for _ in range(_TIMES):
        derive()
    return (time.process_time() - began) / _TIMES * 1e6


def _memory() -> tuple[int, int]:
    """Resident and private memory of this process in MiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kilobytes["Rss"] // 1024, (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) // 1024


def _in_words(memory: tuple[int, int]) -> str:
    resident, private = memory
    return f"{resident} MiB resident, {private} MiB private"


if __name__ == "__main__":
    main()
