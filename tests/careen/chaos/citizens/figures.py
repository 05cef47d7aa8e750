"""What a story of a citizen cost, read from the journal of the API server."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drydock.checker.journal import Object, Write
from drydock.server.audit import writes_of
from drydock.zoo.citizen import NAMESPACE

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

FORECAST = "careen.dev/forecast"
_MARGIN_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Figures:
    """`drains` and `reboots` by node. `forecast` is the number of pods that must leave their nodes by the first
    forecast of each drained node. `unready` has the longest seconds for which a set of pods had fewer ready pods than
    before the needs, and the set's label `app`."""

    drains: Counter[str]
    reboots: Counter[str]
    evictions: int
    forecast: int
    unready: tuple[float, str]

    @property
    def undone(self) -> int:
        return self.drains.total() - self.reboots.total()

    @property
    def most_drains(self) -> int:
        return max(self.drains.values(), default=0)


def figures_of(world: World) -> Figures:
    writes = list(writes_of(world.server.store.journal))
    cordons = [each for each in writes if each.cordons and each.agent == each.name]
    first = {each.name: each for each in reversed(cordons)}
    return Figures(
        drains=Counter(each.name for each in cordons),
        reboots=Counter(each.host for each in world.fleet.log if each.what == "booted"),
        evictions=sum(each.plural == "pods" and each.verb == "evict" and each.agent != "" for each in writes),
        forecast=sum(_pods_in(each.after) for each in first.values()),
        unready=_longest_unready(
            [each for each in writes if each.key[0] == (NAMESPACE if world.zoo.citizens else "shop")], world.now
        ),
    )


def _pods_in(node: Object) -> int:
    text = (node["metadata"].get("annotations") or {}).get(FORECAST, "")
    counts = json.loads(text)["counts"] if text else {}
    return sum(count for outcome, count in counts.items() if outcome != "stays")


def _longest_unready(writes: list[Write], end: float) -> tuple[float, str]:
    """Of every set of pods with one label `app`, except pods without an owner and those of Jobs."""
    ready: dict[str, set[tuple[str, str]]] = defaultdict(set)
    full: dict[str, int] = {}
    short_since: dict[str, float] = {}
    longest = (0.0, "-")
    for write in writes:
        if write.plural != "pods":
            continue
        pod = write.after or write.before
        owners = pod["metadata"].get("ownerReferences") or ()
        app = str((pod["metadata"].get("labels") or {}).get("app", ""))
        if not owners or owners[0]["kind"] == "Job":
            continue
        (ready[app].add if _serves(write.after) else ready[app].discard)(write.key)
        if write.at < _MARGIN_SECONDS:
            full[app] = max(full.get(app, 0), len(ready[app]))
        elif len(ready[app]) < full.get(app, 0):
            short_since.setdefault(app, write.at)
        elif app in short_since:
            longest = max(longest, (round(write.at - short_since.pop(app), 1), app))
    return max([longest, *((round(end - since, 1), app) for app, since in short_since.items())])


def _serves(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" not in (pod.get("metadata") or {}) and any(
        each["type"] == "Ready" and each["status"] == "True" for each in conditions
    )
