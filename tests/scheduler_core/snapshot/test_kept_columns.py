"""Columns that are kept: equal to fresh ones after any changes, worked out again only where rows changed, bounded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_core import Scheduler, Snapshot, pod_from_manifest
from scheduler_core.judge.answer import as_answer
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot import kept_columns
from scheduler_core.snapshot.kept_columns import KeptColumns, Rows, first_stamps, stamped
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import a_node, a_pod, manifests
from tests.scheduler_core.drawn_clusters import clusters, pods

SCHEDULER = Scheduler()
SHAPES = [
    a_pod("small").requesting(cpu="100m", memory="64Mi").build(),
    a_pod("large").requesting(cpu="1", memory="1Gi").build(),
]


@pytest.fixture(scope="module", autouse=True)
def small_clusters_keep_columns() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_columns, "FEWEST_ROWS", 0)
        yield


def said(snapshot: Snapshot, pod: Pod) -> Any:
    """Every verdict and every score of every plugin."""
    return json.loads(json.dumps(as_answer(SCHEDULER.schedule(snapshot, pod))))


def anew(snapshot: Snapshot) -> Snapshot:
    """The same cluster, derived from nothing."""
    return Snapshot.of(snapshot.nodes, [*snapshot.placed_pods, *snapshot.pending], snapshot.objects)


def changes(drawn: st.DataObject, snapshot: Snapshot, coming: Pod) -> Snapshot:
    """One change that a drain or a roll-out makes."""
    node = drawn.draw(st.sampled_from(snapshot.node_names))
    standing = sorted(pod.key for pod in snapshot.pods_on(node))
    more: dict[str, Callable[[], Snapshot]] = {
        "place": lambda: snapshot.with_pod_placed(coming, node),
        "cordon": lambda: snapshot.with_node_cordoned(node),
        "uncordon": lambda: snapshot.with_node_uncordoned(node),
        "grow": lambda: snapshot.with_node_replaced(
            replace(snapshot.node(node), allocatable={"cpu": 9000, "memory": 2**33, "pods": 9, "example.com/gpu": 1})
        ),
    }
    if standing:
        more["remove"] = lambda: snapshot.without_pods(standing)
        more["terminate"] = lambda: snapshot.with_pod_terminating(standing[0])
        more["exchange"] = lambda: snapshot.with_pods_exchanged([(standing[0], coming)])
    return more[drawn.draw(st.sampled_from(sorted(more)))]()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects=clusters(), arrivals=st.lists(pods("x"), min_size=1, max_size=6), incoming=pods("new"), drawn=st.data())
def test_what_is_kept_equals_what_is_worked_out_anew_after_any_changes(
    objects: list[Any], arrivals: list[Any], incoming: Any, drawn: st.DataObject
) -> None:
    """A tree of snapshots, because a drain that is tried and dropped leaves its columns behind."""
    tree = [load_objects(objects)]
    asked = [pod_from_manifest(incoming), *SHAPES]
    for number, manifest in enumerate(arrivals):
        coming = pod_from_manifest({**manifest, "metadata": {**manifest["metadata"], "name": f"x{number}"}})
        tree.append(changes(drawn, drawn.draw(st.sampled_from(tree)), coming))
        snapshot = drawn.draw(st.sampled_from(tree))
        for pod in asked:
            assert said(snapshot, pod) == said(anew(snapshot), pod)


def test_only_changed_rows_are_worked_out_again() -> None:
    kept, stamps = KeptColumns(4), first_stamps(4)
    asked: list[list[int]] = []

    def work_out(rows: Rows | None) -> Any:
        asked.append([] if rows is None else rows.tolist())
        return np.full(4 if rows is None else len(rows), len(asked))

    assert kept.column("a", stamps, work_out).tolist() == [1, 1, 1, 1]
    later = stamped(stamped(stamps, (2,)), (0,))
    assert kept.column("a", later, work_out).tolist() == [2, 1, 2, 1]
    assert kept.column("a", later, work_out).tolist() == [2, 1, 2, 1]
    assert asked == [[], [0, 2]]
    assert kept.column("a", stamps, work_out).tolist() == [3, 1, 3, 1], "who goes back finds the same rows changed"


def test_a_column_that_was_given_out_does_not_change() -> None:
    kept, stamps = KeptColumns(2), first_stamps(2)
    first = kept.column("a", stamps, lambda _: np.zeros(2, dtype=np.int64))
    kept.column("a", stamped(stamps, (1,)), lambda _: np.ones(1, dtype=np.int64))
    assert first.tolist() == [0, 0]


def test_the_columns_asked_for_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_columns, "_LEAST_COLUMNS", 2)
    monkeypatch.setattr(kept_columns, "_MOST_BYTES", 0)
    kept, stamps = KeptColumns(3), first_stamps(3)
    worked_out: list[str] = []

    def ask(key: str) -> None:
        kept.column(key, stamps, lambda _: (worked_out.append(key), np.zeros(3))[1])

    for key in "abacab":
        ask(key)
    assert len(kept) == 2
    assert worked_out == ["a", "b", "c", "b"], "a was asked for between, so b had to go, and then c"


@pytest.mark.parametrize(("fewest", "asked_for"), [(3, [3, 1]), (4, [3, 3])], ids=["large", "small"])
def test_only_clusters_that_are_large_enough_keep_columns(
    fewest: int, asked_for: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_columns, "FEWEST_ROWS", fewest)
    before = load_objects(manifests([a_node("a"), a_node("b"), a_node("c")]))
    asked: list[int] = []

    def work_out(nodes: NodeList) -> Any:
        asked.append(len(nodes))
        return np.zeros(len(nodes), dtype=np.int64)

    for snapshot in (before, before.with_node_cordoned("b")):
        NodeList(snapshot).kept("key", work_out)
    assert asked == asked_for


def test_what_a_drain_changes_in_budgets_and_jobs_forgets_nothing_that_schedulers_read() -> None:
    snapshot = load_objects(manifests([a_node("n")]))
    made: list[int] = []

    def ask(where: Snapshot) -> None:
        where.remember("key", lambda: made.append(1) or "made")

    ask(snapshot)
    ask(snapshot.with_objects(budgets=(), jobs={}))
    assert len(made) == 1
    ask(snapshot.with_objects(claims={}))
    assert len(made) == 2
