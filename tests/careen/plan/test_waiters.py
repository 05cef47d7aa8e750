"""Tests that a plan chooses the same next nodes from a short list of the first waiting nodes as from the list of all
waiting nodes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Budget, BudgetKind, Order, Policy
from careen.core.facts.selectors import Selector
from careen.core.lock import changes, order
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.groups import groups
from careen.core.lock.line import Line
from careen.plan import waiters
from careen.plan.waiters import Waiters
from tests.careen.core.builders import a_node

POLICY = Policy(node_name="any")


@st.composite
def waiting_nodes(draw: st.DrawFn) -> list[NodeView]:
    """Generate up to 60 waiting nodes. Some of them have waited equally long, and some for an unknown time."""
    nodes = []
    for number in range(draw(st.integers(1, 60))):
        labels = {
            keys.REBOOT_LABEL: order.READY,
            keys.ZONE: draw(st.sampled_from("ab")),
            "tier": draw(st.sampled_from(("db", "web"))),
        }
        labels |= {keys.CONTROL_PLANE: ""} if draw(st.integers(0, 9)) == 0 else {}
        need = {"version": 1, "phase": "Waiting", "need_since": f"2026-03-0{draw(st.integers(1, 4))}T00:00:00Z"}
        annotations = {keys.PROGRESS: json.dumps(need)} if draw(st.integers(0, 5)) else {}
        annotations |= {keys.MOVES: str(draw(st.integers(0, 3)))} if draw(st.integers(0, 5)) else {}
        annotations |= {keys.MOVES_IN_ZONE: str(draw(st.integers(0, 3)))} if draw(st.booleans()) else {}
        nodes.append(a_node(f"n{number}", labels=labels, annotations=annotations, ready=draw(st.integers(0, 9)) > 0))
    return nodes


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    every = (
        Budget(kind=BudgetKind.ZONE, limit=draw(st.integers(1, 20))),
        Budget(kind=BudgetKind.SELECTOR, limit=draw(st.integers(1, 3)), selector=Selector.parse("tier=db")),
    )
    return replace(
        POLICY,
        concurrency=draw(st.integers(1, 20)),
        order=draw(st.sampled_from(list(Order))),
        budgets=tuple(each for each in every if draw(st.booleans())),
    )


# `Waiters.short_list` returns only some of the waiting nodes: the nodes in the line, and the first few nodes of each
# kind. The next nodes that are chosen from this short list must equal the next nodes that are chosen from all waiting
# nodes.
@given(nodes=waiting_nodes(), policy=policies(), drawn=st.data())
@settings(max_examples=200, deadline=None)
def test_the_short_list_gives_the_same_next_nodes_as_the_list_of_all_nodes(
    nodes: list[NodeView], policy: Policy, drawn: st.DataObject
) -> None:
    names = [node.name for node in nodes]
    holders = drawn.draw(st.lists(st.sampled_from(nodes), max_size=3, unique_by=lambda node: node.name))
    content = LockContent(line=Line(names=tuple(drawn.draw(st.lists(st.sampled_from(names), max_size=6, unique=True)))))
    for node in holders:
        entry = Entry(node=node.name, id=node.name, groups=tuple(sorted(groups(node, policy))), zone=node.zone)
        content = changes.add(content, entry, 20) or content
    waiting = drawn.draw(st.lists(st.sampled_from(names), unique=True)) or names
    moves = {name: drawn.draw(st.integers(0, 3)) for name in names}
    zone = drawn.draw(st.sampled_from((None, "a", "b")))

    def next_from(some: list[NodeView]) -> tuple[tuple[str, ...], int | None]:
        after = order.name_next(content, some, policy, at="", zone=zone, moves_of=lambda node: moves[node.name])
        return after.line.names, after.line.abreast

    short = Waiters(nodes, policy).short_list(waiting, content, moves.__getitem__)
    assert next_from(short) == next_from([node for node in nodes if node.name in waiting])


# `Waiters.short_list` returns the waiting nodes from which a plan chooses the next nodes. A plan calls `short_list`
# many times on one `Waiters` object. In the test's name, a question is such a call, and the short list is the result of
# a call. Each call must return the same nodes as a call on a new `Waiters` object.
@given(nodes=waiting_nodes(), policy=policies(), drawn=st.data())
@settings(max_examples=60, deadline=None)
def test_earlier_questions_do_not_change_the_short_list(
    nodes: list[NodeView], policy: Policy, drawn: st.DataObject
) -> None:
    """The result of `short_list` does not depend on earlier calls. Between two calls, nodes stop waiting and wait
    again, as when a drain is undone."""
    names = [node.name for node in nodes]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(waiters, "_MOST_GONE", 1)
        asked = Waiters(nodes, policy)
        for _ in range(6):
            waiting = drawn.draw(st.sets(st.sampled_from(names)))
            content = LockContent(line=Line(names=tuple(drawn.draw(st.lists(st.sampled_from(names), unique=True)))))
            fresh = Waiters(nodes, policy).short_list(waiting, content, len)
            assert asked.short_list(waiting, content, len) == fresh


def test_a_plan_considers_only_as_many_equal_nodes_as_the_line_has_places() -> None:
    """`Waiters.short_list` returns the waiting nodes that a plan considers as next nodes. The 1000 nodes differ only in
    their names. The line in the lock has `1 + SPARE_NAMES` places, so the list contains `1 + SPARE_NAMES` nodes."""
    nodes = [a_node(f"n{number:04}", labels={keys.REBOOT_LABEL: order.READY}) for number in range(1000)]
    short = Waiters(nodes, POLICY).short_list([node.name for node in nodes], LockContent(), lambda _: 0)
    assert [node.name for node in short] == [f"n{number:04}" for number in range(1 + order.SPARE_NAMES)]
