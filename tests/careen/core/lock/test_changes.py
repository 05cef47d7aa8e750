"""Changes of the lock's content: who may add a claim, and that a change touches no other claim."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.lock import changes, notation
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from tests.careen.core.builders import UNREADABLE_ROWS, an_entry, held


def understood(content: str | None) -> LockContent:
    found = notation.parse(content)
    assert isinstance(found, LockContent), found
    return found


@pytest.mark.parametrize(
    ("zones", "is_let_in"),
    [(("a",), True), (("a", "a"), True), (("b",), False), (("a", "b"), False), ((None,), False), ((), True)],
)
def test_no_claim_is_added_beside_a_claim_of_another_zone_if_the_order_is_zone(
    zones: tuple[str | None, ...], is_let_in: bool
) -> None:
    content = held(*(an_entry(f"h{number}", zone=zone, limit=5) for number, zone in enumerate(zones)))
    assert (changes.add(content, an_entry("n1", zone="a"), 5, in_one_zone=True) is not None) is is_let_in
    assert changes.add(content, an_entry("n1", zone="a"), 5) is not None


def test_no_claim_is_added_to_a_lock_above_its_limit() -> None:
    content = held(an_entry("n1", "a", limit=3), an_entry("n2", "b", limit=3))
    assert changes.add(content, an_entry("n3", "c"), 1) is None


def test_a_new_claim_replaces_the_older_claim_of_the_same_node() -> None:
    content = changes.add(held(an_entry("n1", "old")), an_entry("n1", "new"), 1)
    assert content is not None
    assert [entry.id for entry in content.entries] == ["new"]


def test_a_node_leaves_the_line_of_waiting_nodes_when_it_takes_a_claim() -> None:
    content = changes.add(LockContent(line=Line(names=("n2", "n1", "n3"))), an_entry("n1"), 1)
    assert content is not None
    assert content.line.names == ("n2", "n3")


def test_a_lost_claim_is_restored_even_in_a_full_or_paused_lock() -> None:
    content = changes.put_back(held(an_entry("n2", "b"), is_paused=True), an_entry("n1", "a"), 1)
    assert content.holders == ("n2", "n1")
    assert content.is_paused


def test_pausing_and_resuming_the_lock_keep_the_claims() -> None:
    before = held(an_entry("n1", "a"))
    paused = notation.parse(notation.render(changes.pause(before, "holidays", 1)))
    assert isinstance(paused, LockContent)
    assert (paused.is_paused, paused.pause_reason, paused.entries) == (True, "holidays", before.entries)
    assert changes.resume(paused).entries == before.entries
    assert changes.resume(paused).is_paused is False


def kured_single_reads_held_by(text: str | None) -> str | None:
    """Return the holder that kured's DaemonSetSingleLock.Acquire reads from the annotation, or None if kured could take
    the lock. kured treats any annotation without a TTL as a held lock."""
    if text is None:
        return None
    record = json.loads(text)
    return None if record.get("TTL") else record.get("nodeID", "")


def kured_multi_lets_in(text: str | None, max_owners: int) -> bool:
    """Whether kured's canAcquireMultiple would grant the lock: the list `locks` in the annotation must have fewer
    entries than `max_owners`."""
    return text is None or len(json.loads(text).get("locks") or []) < max_owners


names = st.sampled_from(["n1", "n2", "n3", "n4"])
operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "pause", "resume", "release", "next", "pass", "rebooted"]),
        names,
        st.integers(1, 3),
    ),
    max_size=25,
)


@given(operations)
def test_adding_claims_never_exceeds_the_limit(steps: list[tuple[str, str, int]]) -> None:
    content = LockContent()
    for number, (step, name, concurrency) in enumerate(steps):
        before = content
        if step == "add":
            added = changes.add(content, an_entry(name, f"c{number}"), concurrency)
            if added is not None:
                content = added
                assert len(content.holders) <= concurrency
                assert len(content.holders) <= min(
                    [concurrency, *(entry.limit for entry in before.entries if entry.node != name)]
                )
                assert not content.is_paused
        elif step == "remove":
            content = changes.remove(
                content, name, next((entry.id for entry in content.entries if entry.node == name), "none")
            )
        elif step == "pause":
            content = changes.pause(content, "why", concurrency)
        elif step == "resume":
            content = changes.resume(content)
        elif step == "release":
            content = changes.release_by_hand(content, name)
        elif step == "next":
            content = content.with_line(
                content.line.naming(
                    (name,), at="2026-03-04T12:00:00Z", waiting=concurrency, abreast=(None, 0, 1)[number % 3]
                )
            )
        elif step == "rebooted":
            content = changes.released(content, f"2026-03-04T12:00:0{number % 10}Z")
        else:
            content = content.with_line(content.line.passing_over((name,)))
        assert len({entry.node for entry in content.entries}) == len(content.entries)
        check_what_everybody_reads(content, concurrency)


def check_what_everybody_reads(content: LockContent, concurrency: int) -> None:
    text = notation.render(content)
    read = notation.parse(text)
    assert isinstance(read, LockContent)
    if text is not None:
        assert (
            read.entries,
            read.is_paused,
            read.line.names,
            read.line.abreast,
            read.line.passed,
            read.released_at,
        ) == (
            content.entries,
            content.is_paused,
            content.line.names,
            content.line.abreast,
            content.line.passed,
            content.released_at,
        )
    if content.entries:
        assert kured_single_reads_held_by(text) in {"manual", *content.holders}
        assert not kured_multi_lets_in(text, len(content.holders))
    if content.is_paused:
        assert kured_single_reads_held_by(text) == "manual"
        assert not kured_multi_lets_in(text, content.max_owners)


TWO_OF_ONE_NODE = held(an_entry("n1", "c1"), an_entry("n1", "c2"), an_entry("n2", "c1"))


def claims(content: LockContent) -> list[tuple[str, str]]:
    return [(entry.node, entry.id) for entry in content.entries]


def test_a_claim_is_removed_only_if_both_its_node_and_its_id_match() -> None:
    assert claims(changes.remove(TWO_OF_ONE_NODE, "n1", "c1")) == [("n1", "c2"), ("n2", "c1")]
    assert claims(changes.remove(TWO_OF_ONE_NODE, "n3", "c1")) == claims(TWO_OF_ONE_NODE)


def test_removing_a_stale_claim_keeps_other_claims_of_the_same_node() -> None:
    assert claims(changes.remove_all(TWO_OF_ONE_NODE, TWO_OF_ONE_NODE.entries[:1])) == [("n1", "c2"), ("n2", "c1")]


def test_a_failure_is_recorded_only_in_the_claim_with_the_given_id() -> None:
    failed = changes.mark_failed(TWO_OF_ONE_NODE, "n1", "c2", "never-ready").failed
    assert [(entry.node, entry.id, entry.failed) for entry in failed] == [("n1", "c2", "never-ready")]


def test_the_lock_records_the_smallest_limit_and_the_limit_of_each_claim() -> None:
    """An older claim was written with a limit of three, a newer claim with a limit of five. kured must read the limit
    three until the older claim is released, and then the limit five."""
    added = changes.add(held(an_entry("n2", "c2", limit=3)), an_entry("n1"), 5)
    assert added is not None
    assert (added.max_owners, added.entries[-1].limit) == (3, 5)
    put_back = changes.put_back(held(an_entry("n2", "c2", limit=3)), an_entry("n1", limit=0), 5)
    assert (put_back.max_owners, put_back.entries[-1].limit) == (3, 5)


def test_only_the_given_claims_are_removed_from_the_lock() -> None:
    stale, living = an_entry("n1", "a"), an_entry("n2", "b")
    assert changes.remove_all(held(stale, living), (stale,)).entries == (living,)


def beside(row: Any) -> str:
    """Return the JSON text of a lock that may contain three claims. Its entries are a valid claim of n1, and `row`."""
    return json.dumps({"nodeID": "n1", "maxOwners": 3, "locks": [{"nodeID": "n1", "id": "c1", "limit": 3}, row]})


@pytest.mark.parametrize("row", UNREADABLE_ROWS.values(), ids=UNREADABLE_ROWS)
def test_a_person_can_release_a_lock_entry_that_has_no_readable_node_name(row: Any) -> None:
    content = understood(beside(row))
    assert content.nodes == ("n1",)
    (nameless,) = [entry for entry in content.entries if entry.is_nameless]
    assert understood(notation.render(changes.release_by_hand(content, nameless.node))).holders == ("n1",)


def test_a_failure_can_be_written_into_a_partly_readable_lock_entry() -> None:
    content = understood(beside({"nodeID": "n2", "id": "c2", "boot": 5}))
    written = understood(notation.render(changes.mark_failed(content, "n2", "c2", "never-ready")))
    assert [(entry.node, entry.failed, entry.unread) for entry in written.failed] == [("n2", "never-ready", "")]


def test_a_node_repairs_its_own_unreadable_lock_entry() -> None:
    content = understood(beside({"nodeID": "n2", "id": "c2", "boot": 5}))
    assert not [entry for entry in changes.put_back(content, an_entry("n2", "c2"), 3).entries if entry.unread]


def test_setting_the_expected_release_time_of_a_claim_changes_no_other_claim() -> None:
    content = LockContent(entries=(an_entry("n1", "c1"), an_entry("n2", "c2")), max_owners=2)
    marked = changes.mark_due(content, "n1", "c1", "2026-03-04T12:00:30Z")
    assert [entry.due for entry in marked.entries] == ["2026-03-04T12:00:30Z", ""]
    assert changes.mark_due(content, "n1", "another", "2026-03-04T12:00:30Z") == content
