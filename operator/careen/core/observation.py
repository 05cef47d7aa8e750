"""Everything that an agent knows in one turn: the facts, and what it read of the lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime

from careen.core.facts.memory import Memory
from careen.core.facts.observation import (
    NOT_ASKED,
    Alert,
    Asked,
    AttachedVolume,
    Chance,
    DryRunAnswer,
    Fleet,
    Gone,
    Holders,
    Need,
    NodeView,
    NotAsked,
    PlacedPod,
    PodView,
    Sample,
    SelfTest,
    Unknown,
)
from careen.core.facts.phases import Evidence
from careen.core.facts.progress import OwnerHealth
from careen.core.lock.reading import LockReading
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value


class Observation(Value, kw_only=True):
    """Fields without a default are always set; the others stay `NOT_ASKED` until a decision wants them."""

    now: datetime  # aware; for windows, holds and texts for people, never for deadlines
    uptime: float  # seconds since the host booted
    chance: Chance
    memory: Memory
    clock_skew_seconds: float | Unknown  # own clock minus the API server's Date header
    node: NodeView | Gone | Unknown
    boot_id: str | Unknown
    need: Need
    self_test: Asked[SelfTest] = NOT_ASKED
    lock: Asked[LockReading] = NOT_ASKED
    peers: Asked[tuple[NodeView, ...]] = NOT_ASKED
    holders: Asked[Holders] = NOT_ASKED
    waiters: Asked[tuple[NodeView, ...]] = NOT_ASKED
    crowd: Asked[int | None] = NOT_ASKED  # how many nodes wait; None: more than the count's limit
    fleet: Asked[Fleet] = NOT_ASKED
    pods: Asked[tuple[PodView, ...]] = NOT_ASKED
    disruptions: Asked[Mapping[str, int]] = NOT_ASKED  # by namespace/name of the budget: evictions allowed now
    alerts: Asked[tuple[Alert, ...]] = NOT_ASKED
    blockers: Asked[tuple[PlacedPod, ...]] = NOT_ASKED  # of entries of --blocking-pods with a wider scope than the node
    queries: Asked[Mapping[str, tuple[Sample, ...] | Unknown]] = NOT_ASKED  # by the name of the health query
    readyz: Asked[tuple[str, ...]] = NOT_ASKED  # the API server's checks that fail; empty: it is ready
    foreign: Asked[tuple[str, ...]] = NOT_ASKED  # a sentence for each foreign coordinator seen; empty: none
    forecast: Asked[Forecast] = NOT_ASKED
    evictability: Asked[Mapping[str, DryRunAnswer]] = NOT_ASKED  # by pod UID
    owners: Asked[tuple[OwnerHealth, ...]] = NOT_ASKED
    owners_at: float | None = None  # the uptime when `owners` were read
    volumes: Asked[tuple[AttachedVolume, ...]] = NOT_ASKED

    def lacks(self, evidence: Evidence) -> bool:
        """Whether the agent has not yet tried to read this in this turn."""
        return isinstance(getattr(self, _FIELD[evidence]), NotAsked)

    def knows(self, evidence: Evidence) -> bool:
        """Whether the agent read this with a usable result."""
        return not isinstance(getattr(self, _FIELD[evidence]), NotAsked | Unknown)


_FIELD: dict[Evidence, str] = {kind: kind.value.replace("-", "_") for kind in Evidence}
assert set(_FIELD.values()) <= {each.name for each in fields(Observation)}
