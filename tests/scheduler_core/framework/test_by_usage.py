"""Tests columns whose values depend on the resources used on each node. These columns are cached, and only changed rows
are computed again."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core.framework.extension_points import Scores
from scheduler_core.framework.scoring import by_usage as module
from scheduler_core.framework.scoring.by_usage import by_usage
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod

NODES = [a_node(f"n{number}").build() for number in range(6)]


class Asked:
    """Records the rows that `by_usage` computes."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, snapshot: Snapshot, rows: tuple[int, ...] | None = None) -> list[int]:
        self.rows = []
        chosen = None if rows is None else np.array(rows, dtype=np.intp)
        return by_usage(NodeList(snapshot, chosen), "free pods", self._free).tolist()

    def _free(self, nodes: NodeList, usage: Usage) -> Scores:
        self.rows += nodes.rows.tolist()
        assert np.array_equal(usage.pods, nodes.take(nodes.snapshot.tally(UsageTally(nodes.rules)).usage.pods))
        return nodes.take(nodes.columns.allowed_pods) - usage.pods


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr(module, "_FEWEST_NODES", len(NODES))
    return Asked()


def placed(snapshot: Snapshot, name: str, node: str) -> Snapshot:
    return snapshot.with_pod_placed(a_pod(name).build(), node)


def test_a_cached_column_is_computed_again_only_for_nodes_whose_usage_changed(asked: Asked) -> None:
    empty = Snapshot.of(NODES)
    assert asked(empty) == [110] * 6
    assert asked.rows == list(range(6))
    one = placed(placed(empty, "a", "n2"), "b", "n4")
    assert asked(one) == [110, 110, 109, 110, 109, 110]
    assert asked.rows == [2, 4]
    assert asked(one) == [110, 110, 109, 110, 109, 110]
    assert asked.rows == []


def test_columns_of_two_derived_snapshots_do_not_affect_each_other(asked: Asked) -> None:
    empty = Snapshot.of(NODES)
    one, other = placed(empty, "a", "n1"), placed(placed(empty, "a", "n2"), "b", "n2")
    for _ in range(2):
        assert asked(one) == [110, 109, 110, 110, 110, 110]
        assert asked(other) == [110, 110, 108, 110, 110, 110]
        assert asked(empty) == [110] * 6


def test_a_query_for_some_nodes_returns_their_values_in_the_requested_order(asked: Asked) -> None:
    assert asked(placed(Snapshot.of(NODES), "a", "n3"), rows=(5, 3)) == [110, 109]


def test_a_cached_column_is_computed_again_if_a_nodes_allocatable_resources_change(asked: Asked) -> None:
    empty = Snapshot.of(NODES)
    asked(empty)
    assert asked(empty.with_node_replaced(a_node("n1").offering(pods="5").build()))[1] == 5
    assert asked(empty.with_node_cordoned("n1")) == [110] * 6
    assert asked.rows == []  # a cordon does not change the allocatable resources


def test_columns_are_correct_after_nodes_were_added_or_deleted(asked: Asked) -> None:
    world = placed(Snapshot.of([*NODES, a_node("n6").build()]), "a", "n6")
    assert asked(world) == [110] * 6 + [109]
    assert asked(world.without_node("n0")) == [109] + [110] * 5  # the last node takes the row
    assert asked(world.with_node_added(a_node("n7").build())) == [110] * 6 + [109, 110]


def test_a_cached_column_has_no_rows_of_deleted_nodes(asked: Asked) -> None:
    small = Snapshot.of(NODES[:5])
    asked(small)
    asked(small)
    assert asked.rows == list(range(5))


@pytest.mark.parametrize("fewest_nodes", [len(NODES), len(NODES) + 1])
def test_computing_columns_of_later_snapshots_does_not_change_an_earlier_column(
    monkeypatch: pytest.MonkeyPatch, fewest_nodes: int
) -> None:
    monkeypatch.setattr(module, "_FEWEST_NODES", fewest_nodes)

    def pods(snapshot: Snapshot) -> Scores:
        # The lambda returns the snapshot's own array. `by_usage` must not change that array.
        return by_usage(NodeList(snapshot), "pods", lambda _, usage: usage.pods)

    one = placed(Snapshot.of(NODES), "a", "n1")
    before = pods(one)
    two, three = placed(one, "b", "n2"), placed(one, "c", "n3")
    for snapshot, expected in ((two, [0, 1, 1, 0, 0, 0]), (three, [0, 1, 0, 1, 0, 0]), (two, [0, 1, 1, 0, 0, 0])):
        assert pods(snapshot).tolist() == expected
        assert snapshot.tally(UsageTally(NodeList(snapshot).rules)).usage.pods.tolist() == expected
    assert before.tolist() == [0, 1, 0, 0, 0, 0]
