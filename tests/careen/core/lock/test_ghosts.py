"""A claim is freed by proof only: a consistent read of its Node, never by time and never by a node's silence."""

from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView
from careen.core.facts.phases import Phase
from careen.core.lock import ghosts
from careen.core.lock.content import Entry
from tests.careen.core.builders import a_marked_node, a_node, a_progress, an_entry, held

HOLDING = a_marked_node(a_progress(Phase.DRAINING))
FREE = a_node()
RECREATED = a_node(uid="uid-other")
UNREADABLE = a_node(annotations={keys.PROGRESS: '{"version":99}'})


def proven(entry: Entry, node: NodeView | None, since: dict[str, float] | None = None, uptime: float = 1000.0) -> bool:
    holders = Holders(nodes=(node,)) if node else Holders(absent=frozenset({entry.node}))
    return bool(ghosts.watch(held(entry), holders, since or {}, uptime=uptime, deadline_seconds=900).proven)


@pytest.mark.parametrize(
    ("entry", "node", "expected"),
    [
        pytest.param(an_entry(), FREE, True, id="its Node carries no claim"),
        pytest.param(an_entry(claim="older"), HOLDING, True, id="its Node carries another claim"),
        pytest.param(an_entry(), HOLDING, False, id="its Node carries this claim"),
        pytest.param(an_entry(), UNREADABLE, False, id="its Node's record cannot be read"),
        pytest.param(an_entry(), RECREATED, False, id="its Node was recreated just now"),
        pytest.param(an_entry(), None, False, id="its Node is gone just now"),
        pytest.param(an_entry(claim=""), FREE, False, id="kured's entry, which leaves no record on the Node"),
    ],
)
def test_what_one_look_proves(entry: Entry, node: NodeView | None, expected: bool) -> None:
    assert proven(entry, node) is expected


@pytest.mark.parametrize("node", [None, RECREATED])
@pytest.mark.parametrize(("seen_for", "expected"), [(899.0, False), (900.0, False), (901.0, True)])
def test_a_missing_or_recreated_node_proves_something_only_after_the_reboot_deadline(
    node: NodeView | None, seen_for: float, expected: bool
) -> None:
    assert proven(an_entry(), node, since={"n1/c1": 1000.0 - seen_for}) is expected


def test_the_watch_begins_anew_when_the_node_comes_back() -> None:
    watch = ghosts.watch(
        held(an_entry()), Holders(nodes=(HOLDING,)), {"n1/c1": 1.0}, uptime=5000.0, deadline_seconds=900
    )
    assert watch.proven == ()
    assert watch.since == {}


def test_a_node_that_was_not_read_proves_nothing() -> None:
    watch = ghosts.watch(
        held(an_entry(), an_entry("n2", "c2")), Holders(nodes=(FREE,)), {}, uptime=1.0, deadline_seconds=900
    )
    assert [entry.node for entry in watch.proven] == ["n1"]
