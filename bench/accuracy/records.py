"""Recorded drains in files: the cluster, its listed objects, the start of the scheduler's search, the result. After
a change of scheduler_core, they are forecast and scored again without a control plane."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.cluster.harness.measures.drains import Happened, PodEvent


class DrainRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A drain of `node`. `start` is where the scheduler would have begun a search right before it; `log` is what the
    scheduler logged from then until the cluster was quiet again after the uncordon."""

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
        """The title in tables: seed and number of nodes."""
        return f"{self.seed}: {self.size} nodes"

    @property
    def happened(self) -> Happened:
        """The API objects before the drain, the events of the pods during it, and its seconds."""
        return Happened(
            node=self.node,
            pages=[page.encode() for page in self.pages],
            lacking=self.lacking,
            events=self.events,
            seconds=self.seconds,
        )


def write(path: Path, record: DrainRecord) -> None:
    """Completely or not at all: a bench may be interrupted at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(gzip.compress(msgspec.json.encode(record), 3))
    fresh.replace(path)


def read(path: Path) -> DrainRecord:
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=DrainRecord)


def paths(folder: Path) -> Iterator[Path]:
    """The records of a cluster come together, in the order of its drains."""
    yield from sorted(folder.glob("*/*.json.gz"), key=lambda path: (path.parent.name, _drain_number(path)))


def _drain_number(path: Path) -> int:
    return int(path.name.removesuffix(".json.gz"))
