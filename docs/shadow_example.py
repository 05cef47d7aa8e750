"""The example at the top of docs/shadow.md: the table that `careen shadow` prints for a small cluster. `make docs`
writes it.

This script makes the cluster's events. scheduler_core chooses the node of every pod except one, which is bound to
another node.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from careen.report.shadow.shadow_report import Followed, shadow_text
from careen.shadow.shadow import Shadow
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cycle import Scheduler
from scheduler_core.testing.builders import a_node, a_pod

PAGE: Final = Path(__file__).parent / "shadow.md"
BEGINS: Final = datetime(2026, 3, 4, 21, 58, tzinfo=UTC)
NODES: Final = 12
BINDINGS: Final = 60
MISPLACED: Final = 25  # the number of the pod that somebody binds to another node
SECONDS_BETWEEN: Final = 0.2
_EXAMPLE: Final = re.compile(r"```console\n\$ careen shadow --once .*?```\n", re.DOTALL)

Json = dict[str, Any]


class Example:
    """A small cluster in which pods are created one after another, and a `Shadow` that follows it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.events = 0
        self._version = 0
        self._scheduler = Scheduler()
        self._chance = random.Random(1)  # noqa: S311 - every run writes the same example
        self._cache = ClusterCache()
        self._shadow = Shadow(
            self._cache,
            self._scheduler,
            profiles=tuple(self._scheduler.runners),
            monotonic=lambda: self.seconds,
            now=lambda: BEGINS + timedelta(seconds=self.seconds),
        )

    def table(self) -> str:
        """The table after `BINDINGS` pods were created and bound."""
        self._list("Node", [_node(number) for number in range(NODES)])
        self._list("Pod", [_pod(f"db-{number}", on=_name(number)) for number in range(NODES)])
        for number in range(BINDINGS):
            self._comes(number)
        while self._shadow.compare(at_last=True):
            pass
        snapshot = self._cache.snapshot()
        followed = Followed(
            seconds=self.seconds,
            nodes=len(snapshot.nodes),
            pods=len(snapshot.placed_pods),
            events=self.events,
            lists=2,
        )
        return shadow_text(self._shadow.tally, followed, last=10)

    def _comes(self, number: int) -> None:
        name, millis = f"web-{number}", 100 * self._chance.randint(1, 5)
        self._event("ADDED", _pod(name, millis))
        node = self._node_for(name, is_misplaced=number == MISPLACED)
        self._event("MODIFIED", _pod(name, millis, on=node))
        self.seconds += SECONDS_BETWEEN
        while self._shadow.compare():
            pass

    def _node_for(self, name: str, *, is_misplaced: bool) -> str:
        snapshot = self._cache.snapshot()
        best = self._scheduler.schedule(snapshot, snapshot.pod(f"shop/{name}")).best
        if is_misplaced:
            return next(each for each in snapshot.node_names if each not in best)
        return self._chance.choice(best)

    def _list(self, kind: str, items: list[Json]) -> None:
        self._shadow.before_list(kind)
        self._cache.apply({"kind": f"{kind}List", "apiVersion": "v1", "items": items})

    def _event(self, type_: str, manifest: Json) -> None:
        self._version, self.events = self._version + 1, self.events + 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        line = json.dumps({"type": type_, "object": manifest}).encode()
        self._shadow.before(manifest["kind"], line)
        self._shadow.after(manifest["kind"], has_changed=self._cache.apply(line))


def _name(number: int) -> str:
    return f"node-{number:02}"


def _node(number: int) -> Json:
    cpu = (8, 8, 16)[number % 3]
    built = a_node(_name(number)).offering(cpu=str(cpu), memory=f"{4 * cpu}Gi", pods="110")
    return {**built.manifest, "kind": "Node", "apiVersion": "v1"}


def _pod(name: str, millis: int = 500, on: str = "") -> Json:
    built = a_pod(name).requesting(cpu=f"{millis}m", memory=f"{millis}Mi")
    manifest: Json = json.loads(json.dumps({**built.manifest, "kind": "Pod", "apiVersion": "v1"}))
    manifest["metadata"] |= {"namespace": "shop", "uid": f"uid-{name}"}
    manifest["spec"]["nodeName"] = on
    return manifest


def page() -> str:
    """docs/shadow.md with a newly computed example."""
    example = f"```console\n$ careen shadow --once --bindings {BINDINGS}\n{Example().table()}\n```\n"
    return _EXAMPLE.sub(lambda _: example, PAGE.read_text(encoding="utf-8"), count=1)


PAGES: Final[dict[str, Callable[[], str]]] = {"docs/shadow.md": page}
