"""Bugs that are typical of code with locks. Each replaces a part of production's code, and the exploration must find
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from careen.core.actions import AskReboot, PatchNode, WriteLock
from careen.core.lock import changes, stale_claims
from careen.core.lock import content as lock
from careen.core.steps import rebooting
from tests.careen.explored.fleet import Bounds, Kind, SmallFleet


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A bug, the bounds of an exploration that finds it, and the rule that it breaks."""

    plant: Callable[[SmallFleet], Iterator[None]]
    bounds: Bounds
    breaks: str


def _claims_without_a_version(fleet: SmallFleet) -> Iterator[None]:
    """An agent writes its claim even if the lock has changed since it read the lock."""
    fleet.is_guarded = lambda act: not (isinstance(act, WriteLock) and act.purpose == "take a claim")
    yield


def _removes_the_first(_fleet: SmallFleet) -> Iterator[None]:
    """A node that releases its claim removes the first claim in the lock."""

    def remove(content: lock.LockContent, _node: str, _claim: str) -> lock.LockContent:
        return changes.remove_all(content, content.entries[:1])

    with patch.object(changes, "remove", remove):
        yield


def _reboots_with_an_old_reading(_fleet: SmallFleet) -> Iterator[None]:
    """An agent that decided long ago to reboot its host asks without reading the lock again."""

    def ask(**_: object) -> AskReboot:
        return AskReboot(within_seconds=1e9)

    with patch.object(lock, "confirms", lambda *_: True), patch.object(rebooting, "AskReboot", ask):
        yield


def _frees_missing_nodes_at_once(_fleet: SmallFleet) -> Iterator[None]:
    """An agent removes the claim of a missing Node at once, although the Node may be created again."""
    examine = stale_claims.examine

    def at_once(*given: object, **options: object) -> stale_claims.StaleClaims:
        return examine(*given, **{**options, "deadline_seconds": -1.0})  # type: ignore[arg-type]

    with patch.object(stale_claims, "examine", at_once):
        yield


def _patches_without_a_version(fleet: SmallFleet) -> Iterator[None]:
    """A patch of the Node takes effect even if the Node has changed since the agent read it."""
    fleet.is_guarded = lambda act: not isinstance(act, PatchNode)
    yield


PLANTED = {
    "an agent writes a claim without a resourceVersion": Planted(
        plant=_claims_without_a_version, bounds=Bounds(agents=3, faults=0, delays=2), breaks="other's claim"
    ),
    "a node removes the first claim instead of its own": Planted(
        plant=_removes_the_first, bounds=Bounds(agents=3, concurrency=2, faults=0, delays=1), breaks="other's claim"
    ),
    "an agent reboots without reading the lock again": Planted(
        plant=_reboots_with_an_old_reading,
        bounds=Bounds(agents=1, faults=2, kinds=(Kind.FROZEN, Kind.PAUSED), delays=0),
        breaks="pause",
    ),
    "an agent removes the claim of a missing Node at once": Planted(
        plant=_frees_missing_nodes_at_once,
        bounds=Bounds(agents=2, faults=1, kinds=(Kind.SCRAPPED,), delays=0),
        breaks="other's claim",
    ),
    "an agent patches a Node without a resourceVersion": Planted(
        plant=_patches_without_a_version,
        bounds=Bounds(agents=2, faults=1, kinds=(Kind.LATE,), delays=0),
        breaks="concurrency",
    ),
}


@contextmanager
def planted(bug: Planted, fleet: SmallFleet) -> Iterator[None]:
    yield from bug.plant(fleet)
