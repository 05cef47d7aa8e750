"""Stale claims, which their node no longer uses. careen removes such a claim only if a consistent read of
the Node object proves that the node does not use the claim. A claim that is old, or whose node does not respond, is
kept."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView
from careen.core.facts.phases import Phase
from careen.core.lock.content import Entry, Overdue
from careen.core.lock.stale_claims import StaleClaims, examine
from careen.core.steps.shared import holder_checks
from tests.careen.core.builders import (
    UPTIME,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    a_situation,
    an_entry,
    held,
)

HOLDING = a_marked_node(a_progress(Phase.DRAINING))
FREE = a_node()
CORDONED = a_node(unschedulable=True, cordoned_by=(keys.FIELD_MANAGER,))
PUT_BACK = a_node(
    annotations={keys.PROGRESS: '{"version":1,"phase":"Waiting"}'},
    unschedulable=True,
    cordoned_by=(keys.FIELD_MANAGER,),
)
RECREATED = a_node(uid="uid-other")
RESTORED = a_marked_node(a_progress(Phase.DRAINING), uid="uid-other")
OTHER_CLAIM = a_marked_node(a_progress(Phase.DRAINING, claim="c2"))
IN_PARTS = an_entry(unread='{"nodeID":"n1","id":"c1","groups":7}')
LONG_AGO = {"n1/c1": 0.0, "n1/": 0.0}
UNREADABLE = a_node(annotations={keys.PROGRESS: '{"version":99}'})
ELSEWHERE = a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Elsewhere"}'})
HALF = a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Rebooting"}'})


def proven(entry: Entry, node: NodeView | None, since: dict[str, float] | None = None, uptime: float = 1000.0) -> bool:
    holders = Holders(nodes=(node,)) if node else Holders(absent=frozenset({entry.node}))
    return bool(examine(held(entry), holders, since or {}, uptime=uptime, server_now=None, deadline_seconds=900).proven)


@pytest.mark.parametrize(
    ("entry", "node", "expected"),
    [
        pytest.param(an_entry(), FREE, True, id="the Node has no claim"),
        pytest.param(an_entry(claim="older"), HOLDING, True, id="the Node has another claim"),
        pytest.param(an_entry(), HOLDING, False, id="the Node has this claim"),
        pytest.param(an_entry(), UNREADABLE, False, id="the Node's record cannot be read"),
        pytest.param(an_entry(), ELSEWHERE, False, id="the Node's record has an unknown phase"),
        pytest.param(an_entry(), HALF, False, id="the Node's record contradicts itself"),
        pytest.param(an_entry(), CORDONED, False, id="the Node has careen's cordon but no record"),
        pytest.param(an_entry(), PUT_BACK, False, id="the Node has careen's cordon and a record without a claim"),
        pytest.param(an_entry(), a_node(unschedulable=True), False, id="the Node has a cordon of an unknown client"),
        pytest.param(
            an_entry(), a_node(unschedulable=True, cordoned_by=("kubectl",)), True, id="the Node has a person's cordon"
        ),
        pytest.param(an_entry(), RECREATED, False, id="the Node was recreated just now"),
        pytest.param(an_entry(), None, False, id="the Node was deleted just now"),
        pytest.param(an_entry(claim=""), FREE, False, id="a claim of kured, which writes no record"),
    ],
)
def test_one_read_of_the_node_may_prove_that_a_claim_has_no_holder(
    entry: Entry, node: NodeView | None, expected: bool
) -> None:
    assert proven(entry, node) is expected


@pytest.mark.parametrize("node", [None, RECREATED])
@pytest.mark.parametrize(("seen_for", "expected"), [(899.0, False), (900.0, False), (901.0, True)])
def test_after_the_reboot_deadline_a_missing_or_recreated_node_no_longer_holds_its_claim(
    node: NodeView | None, seen_for: float, expected: bool
) -> None:
    assert proven(an_entry(), node, since={"n1/c1": 1000.0 - seen_for}) is expected


@pytest.mark.parametrize(
    ("entry", "node"),
    [
        pytest.param(an_entry(), RESTORED, id="a Node recreated from a copy that has the claim"),
        pytest.param(an_entry(claim="", uid=""), FREE, id="a claim of kured"),
        pytest.param(an_entry(claim=""), OTHER_CLAIM, id="a claim of kured, on a Node with a claim of careen"),
        pytest.param(IN_PARTS, FREE, id="a partly readable claim"),
    ],
)
def test_a_claim_of_kured_or_of_a_node_recreated_from_a_copy_is_never_stale(entry: Entry, node: NodeView) -> None:
    assert not proven(entry, node, since=LONG_AGO, uptime=1e6)


def test_a_claim_whose_node_was_never_read_is_treated_as_held() -> None:
    stale = examine(held(an_entry()), Holders(), LONG_AGO, uptime=1e6, server_now=None, deadline_seconds=900)
    assert (stale.proven, stale.suspected) == ((), {})


def watched(mark: Overdue, **policy: Any) -> StaleClaims:
    """Return what a new agent process knows about the claim of a deleted Node. Another agent has marked this claim as
    overdue with `mark`."""
    content = held(an_entry("n2", "c2", created="2026-03-04T11:00:00Z", overdue=mark))
    situation = a_situation(policy=a_policy(reboot_deadline_seconds=900.0, **policy), lock=content)
    return holder_checks.examined(situation, content, Holders(absent=frozenset({"n2"})))


def test_an_overdue_mark_without_a_phase_says_since_when_the_node_is_missing() -> None:
    """A mark without a phase says since when the Node is missing. Here this is 11:30, and now it is 12:00. Half an hour
    is longer than the reboot deadline of 15 minutes, so the claim is stale.

    A mark with a phase says since when the node has been in this phase, but not since when the Node is missing. The
    agent first notices now that the Node is missing, so the agent counts the time from now on, and the claim is not
    stale yet.
    """
    since = "2026-03-04T11:30:00Z"
    assert [entry.node for entry in watched(Overdue(phase="", since=since)).proven] == ["n2"]
    assert watched(Overdue(phase="Rebooting", since=since)).proven == ()
    assert watched(Overdue(phase="Rebooting", since=since)).suspected == {"n2/c2": UPTIME}


def test_a_deleted_nodes_claim_stays_for_the_longer_of_lock_ttl_and_reboot_deadline() -> None:
    assert watched(Overdue(phase="", since="2026-03-04T11:30:00Z"), lock_ttl_seconds=3600.0).proven == ()


def test_the_wait_for_a_missing_node_ends_when_the_node_reappears() -> None:
    stale = examine(
        held(an_entry()),
        Holders(nodes=(HOLDING,)),
        {"n1/c1": 1.0},
        uptime=5000.0,
        server_now=None,
        deadline_seconds=900,
    )
    assert stale.proven == ()
    assert stale.suspected == {}


def test_a_claim_is_not_stale_if_the_agent_has_not_read_the_claims_node() -> None:
    stale = examine(
        held(an_entry(), an_entry("n2", "c2")),
        Holders(nodes=(FREE,)),
        {},
        uptime=1.0,
        server_now=None,
        deadline_seconds=900,
    )
    assert [entry.node for entry in stale.proven] == ["n1"]
