"""The tests plant defects in careen. Storms (random faults in a simulated fleet) find each planted defect, so they can
reveal real defects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from careen.cluster import nodes
from careen.cluster.wire.answers import the_page
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.transport import Request
from careen.core.drain.drain_plan import DrainPlan
from careen.core.lock import content
from tests.careen.chaos.storm.draw import story_of
from tests.careen.chaos.storm.play import play

Plant = Callable[[pytest.MonkeyPatch], None]


def read_only_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pages(self: Any, path: str, *, query: Any = None, **_: Any) -> AsyncIterator[bytes]:
        asked = Request(method="GET", path=path, query={**(query or {}), "limit": "500"})
        yield await self._read(asked, lambda body: (the_page(body, path, path), body)[1])

    monkeypatch.setattr(ClusterApi, "pages", pages)


def write_whatever_stands_there_now(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = nodes.merge_patch

    def unguarded(patch: Any, version: str) -> Any:
        made = guarded(patch, version)
        made["metadata"].pop("resourceVersion")
        return made

    monkeypatch.setattr(nodes, "merge_patch", unguarded)


def wait_for_no_pod_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrainPlan, "is_done", property(lambda plan: not (plan.now or plan.later)))


def count_no_holders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "limit", lambda _content, _concurrency: 9)


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("plant", "seed", "law"),
    [
        pytest.param(read_only_the_first_page, 14, "drained", id="careen reads only the first page of a list"),
        pytest.param(write_whatever_stands_there_now, 130, "end", id="patches of a Node contain no resourceVersion"),
        pytest.param(wait_for_no_pod_that_ends, 4, "drained", id="a drain does not wait for terminating pods"),
        pytest.param(count_no_holders, 0, "claims", id="careen ignores the limit of claims"),
    ],
)
def test_storms_of_random_faults_find_a_planted_defect(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, seed: int, law: str
) -> None:
    assert not play(story_of(seed)).broken
    plant(monkeypatch)
    assert law in play(story_of(seed)).laws
