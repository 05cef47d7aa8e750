"""Tests what `careen cleanup` removes from the lock, and what it keeps."""

from __future__ import annotations

import pytest

from careen.core.cleanup.lock import leftovers
from careen.core.cleanup.values import Extent
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from careen.core.lock.notation import parse, render

OURS = Entry(node="n1", id="claim-1", created="2026-03-04T12:00:00Z")
KUREDS = Entry(node="n2")
UNREAD = Entry(node="n3", id="claim-3", unread='{"nodeID":"n3","id":"claim-3","boot":7}')
NOTHING = Extent()


@pytest.mark.parametrize(
    ("name", "extent", "keep", "left"),
    [
        ("by default only careen's claim is removed", NOTHING, (), (KUREDS, UNREAD)),
        ("the claim of a node that was not cleaned up stays", NOTHING, ("n1",), (OURS, KUREDS, UNREAD)),
        ("kured's claim is removed on request", Extent(with_kureds=True), (), (UNREAD,)),
        ("an unreadable claim is removed on request", Extent(with_unknown=True), (), (KUREDS,)),
        ("all claims are removed on request", Extent(with_kureds=True, with_unknown=True), (), ()),
    ],
)
def test_a_cleanup_removes_careens_claims_from_the_lock(
    name: str, extent: Extent, keep: tuple[str, ...], left: tuple[Entry, ...]
) -> None:
    content = LockContent(entries=(OURS, KUREDS, UNREAD), max_owners=3)
    found = leftovers(content, extent, keep=keep)
    assert found.content.entries == left, name
    assert {mark.name for mark in found.stays} == {entry.node for entry in left}


def test_a_cleanup_removes_the_line_of_waiting_nodes_from_the_lock() -> None:
    content = LockContent(
        line=Line(names=("n4", "n5"), at="2026-03-04T12:00:00Z", abreast=1, waiting=7, passed=("n6",))
    )
    assert render(leftovers(content, NOTHING).content) is None
    assert len(leftovers(content, NOTHING).goes) == 1


@pytest.mark.parametrize(("pods", "is_paused"), [(0, False), (3, True)])
def test_a_cleanup_removes_a_pause_if_no_agent_runs(pods: int, is_paused: bool) -> None:
    content = LockContent(is_paused=True, pause_reason="freeze", max_owners=2)
    found = leftovers(content, Extent(pods=pods)).content
    assert (found.is_paused, found.pause_reason) == (is_paused, "freeze" if is_paused else "")


@pytest.mark.parametrize("text", [None, "", '{"nodeID":"n2"}', '{"maxOwners":2,"locks":[{"nodeID":"n2"}]}'])
def test_a_cleanup_does_not_change_a_lock_without_careens_content(text: str | None) -> None:
    content = parse(text)
    assert isinstance(content, LockContent)
    assert leftovers(content, NOTHING).goes == ()
