"""The annotation in which a node remembers its slow pods: its pauses, what ends them, its size."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory, KnownOwner, UnderWay, digest, of, pause_seconds, to_annotation
from careen.core.drain.refused_evictions import SlowPod
from careen.core.facts import keys
from scheduler_core.simulation.forecast import Opens
from tests.careen.core.builders import NOW, a_node

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def a_slow_pod(**changes: Any) -> SlowPod:
    given = {
        "title": "shop/pg-1",
        "uid": "uid-pg-1",
        "owner": "Cluster shop/pg",
        "owner_uid": "c",
        "budget": "b/1",
        "webhook": "w",
    }
    return SlowPod(**{**given, **changes})


def remembered(undone: int, ago: timedelta = MINUTE, **changes: Any) -> DrainMemory:
    row = KnownOwner(
        **{"owner_uid": "c", "budget": "b/1", "webhook": "w", "undone": undone, "at": NOW - ago, **changes}
    )
    return DrainMemory(known={"Cluster shop/pg": row})


@pytest.mark.parametrize(
    ("undone", "plain", "minutes"),
    [(1, False, 15), (2, False, 30), (3, False, 1440), (9, False, 1440), (1, True, 1440)],
)
def test_the_pause_doubles_and_is_a_day_after_three_undone_drains(undone: int, plain: bool, minutes: int) -> None:
    assert pause_seconds(undone, is_plain_denial=plain) == minutes * 60
    pod = a_slow_pod(is_plain_denial=plain)
    assert remembered(undone).next_try([pod], NOW) == NOW + (minutes - 1) * MINUTE


@pytest.mark.parametrize(
    "changed",
    [{"owner_uid": "d"}, {"budget": "b/2"}, {"budget": "x/1"}, {"webhook": "v"}, {"owner": "Cluster shop/other"}],
)
def test_another_controller_budget_or_webhook_ends_the_pause(changed: dict[str, str]) -> None:
    assert remembered(3).next_try([a_slow_pod(**changed)], NOW) is None


@pytest.mark.parametrize("unknown", [{"budget": ""}, {"webhook": ""}, {"owner_uid": ""}])
def test_a_fact_that_is_not_known_ends_no_pause(unknown: dict[str, str]) -> None:
    assert remembered(3).next_try([a_slow_pod(**unknown)], NOW) is not None


def test_a_changed_budget_forgets_no_way_of_opening() -> None:
    known = remembered(3, opens=Opens.EMPTIED).of(a_slow_pod(budget="b/2"))
    assert (known.opens, known.undone) == (Opens.EMPTIED, 0)


def test_three_undone_drains_within_a_day_stop_the_node_whatever_changed() -> None:
    memory = DrainMemory(undone=tuple(NOW - hours * timedelta(hours=1) for hours in (5, 3, 1)))
    assert memory.next_try([a_slow_pod()], NOW) == NOW + timedelta(hours=19)
    assert memory.next_try([a_slow_pod()], NOW + timedelta(hours=19)) is None
    assert memory.next_try([], NOW) is None, "a node without slow pods is not concerned"


def test_instants_of_a_wrong_clock_stop_nothing() -> None:
    future = NOW + 300 * DAY
    assert remembered(3, ago=-300 * DAY).next_try([a_slow_pod()], NOW) is None
    assert DrainMemory(undone=(future, future, future)).next_try([a_slow_pod()], NOW) is None


def test_a_retry_forgives_every_undone_drain_but_forgets_no_way_of_opening() -> None:
    memory = DrainMemory(known=remembered(3, opens=Opens.CORDON).known, undone=(NOW, NOW, NOW))
    node = a_node(annotations={keys.DRAIN_MEMORY: to_annotation(memory)})
    after = of(a_node(annotations=drain_memory.forgiven(node)))
    assert after.next_try([a_slow_pod()], NOW) is None
    assert after.of(a_slow_pod()).opens is Opens.CORDON


def test_what_is_written_is_read_again() -> None:
    memory = DrainMemory(
        known=remembered(2, opens=Opens.ATTEMPT, seconds=7.0, revision="r").known,
        undone=(NOW,),
        under_way=UnderWay(claim="c1", owners=frozenset({digest("a")}), plain_after_seconds=0.0, is_cut=True),
    )
    assert of(a_node(annotations={keys.DRAIN_MEMORY: to_annotation(memory)})) == memory
    assert to_annotation(DrainMemory()) is None


def test_the_annotation_keeps_the_newest_rows_within_its_limits() -> None:
    rows = {
        f"Cluster shop/{'x' * 60}-{index}": KnownOwner(owner_uid="u" * 36, budget="b" * 38, at=NOW + index * MINUTE)
        for index in range(40)
    }
    text = to_annotation(DrainMemory(known=rows))
    assert text is not None
    kept = json.loads(text)["known"]
    assert len(text) <= drain_memory.MOST_BYTES
    assert 0 < len(kept) <= drain_memory.MOST_KEYS
    assert f"Cluster shop/{'x' * 60}-39" in kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"known": 3, "undone": {}, "now": []}',
        '{"known": {"a": 1, "b": {"opens": "later", "undone": -1, "seconds": "x", "at": 7}}, "undone": [1, null]}',
        '{"now": {"claim": "", "owners": []}}',
    ],
)
def test_nonsense_is_not_remembered(text: str) -> None:
    memory = of(a_node(annotations={keys.DRAIN_MEMORY: text}))
    assert memory.next_try([a_slow_pod(), a_slow_pod(owner="b")], NOW) is None
    assert memory.under_way is None
