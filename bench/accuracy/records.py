"""Stores recorded drains in files: the cluster, the listed objects, the node at which the scheduler's search started,
and the result. After a change of scheduler_core, the drain in such a file can be forecast and scored again without a
control plane."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.cluster.harness.measures.drains import Happened, PodEvent


class DrainRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One drain of the node `node`. `start` is the position in the list of nodes at which the scheduler would have
    begun a search right before the drain. `log` is the text that the scheduler logged from the moment right before the
    drain until the cluster was quiet again after the uncordon of `node`."""

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
        """The title of the cluster in tables: its seed and its number of nodes."""
        return f"{self.seed}: {self.size} nodes"

    @property
    def happened(self) -> Happened:
        """The recorded facts about the drain: the API objects before the drain, the events of the pods during the
        drain, and its length in seconds."""
        return Happened(
            node=self.node,
            pages=[page.encode() for page in self.pages],
            lacking=self.lacking,
            events=self.events,
            seconds=self.seconds,
        )


def write(path: Path, record: DrainRecord) -> None:
    """Writes the record completely or not at all, because a bench may be interrupted at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(gzip.compress(msgspec.json.encode(record), 3))
    fresh.replace(path)


def read(path: Path) -> DrainRecord:
    """Reads a file that `write` created."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=DrainRecord)


def paths(folder: Path) -> Iterator[Path]:
    """Yields the paths of all records. The records of a cluster come together, in the order of its drains."""
    yield from sorted(folder.glob("*/*.json.gz"), key=lambda path: (path.parent.name, _drain_number(path)))


def _drain_number(path: Path) -> int:
    return int(path.name.removesuffix(".json.gz"))
