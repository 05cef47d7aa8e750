"""Drains that took place, in files: what the cluster was, what was listed, where the scheduler's search began and what
happened. A model that changed is judged by them anew, without a control plane."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.cluster.harness.measures.drains import Happened, PodEvent


class DrainRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One drain. `start` is where the scheduler's next search began when it was listed; `log` is what the scheduler
    logged until the node was given back."""

    kind: str
    seed: int
    size: int
    node: str
    start: int
    pages: list[str]
    lacking: dict[str, int]
    events: list[PodEvent]
    seconds: float
    log: str

    @property
    def cluster(self) -> str:
        """As tables name it."""
        return f"{self.seed}: {self.size} nodes"

    @property
    def happened(self) -> Happened:
        """As the drainer told it."""
        return Happened(
            node=self.node,
            pages=[page.encode() for page in self.pages],
            lacking=self.lacking,
            events=self.events,
            seconds=self.seconds,
        )


def write(path: Path, record: DrainRecord) -> None:
    """Whole or not at all: a bench may be interrupted at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(gzip.compress(msgspec.json.encode(record), 3))
    fresh.replace(path)


def read(path: Path) -> DrainRecord:
    """What `write` wrote."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=DrainRecord)


def paths(folder: Path) -> Iterator[Path]:
    """Of all records, cluster by cluster in the order in which they were made."""
    yield from sorted(folder.glob("*/*.json.gz"), key=lambda path: (path.parent.name, path.name))
