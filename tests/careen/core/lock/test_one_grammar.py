"""The admission policies and careen read the same owners in every text of the lock, and the policies let in whatever
careen writes. tests/cluster/test_lock_grammar.py does the same with the policies of a real API server."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from careen.core import rescue
from careen.core.lock import changes, notation
from careen.core.lock import content as lock
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.lock.line import Line
from tests.careen.core.builders import an_entry, an_owner, held
from tests.careen.core.lock import lock_policy
from tests.careen.core.lock.hostile_locks import broken_lock, canonical_lock, hostile_lock

TEXTS = 4_000


def folded(expression: str) -> str:
    return " ".join(expression.split())


def test_the_translated_expressions_are_those_of_the_manifest() -> None:
    stated = {name: folded(text) for name, text in lock_policy.expressions(lock_policy.LOCK_ONLY).items()}
    ours = {name: text for name, (text, _) in (lock_policy.READING | lock_policy.VALIDATIONS).items()}
    assert {name: stated[name] for name in ours} == ours
    of_the_request = {"node", "lock", "before", "after", "textBefore", "textAfter"}
    of_other_fields = {"change the lock only with the token of a pod on a node", "change the lock of its DaemonSet"}
    assert set(stated) - set(ours) == of_the_request | of_other_fields
    evicting = {name: folded(text) for name, text in lock_policy.expressions(lock_policy.EVICT).items()}
    assert {name: evicting[name] for name in lock_policy.EVICTING} == lock_policy.EVICTING


def test_the_agents_read_owners_with_the_policies_own_expressions() -> None:
    stated = lock_policy.expressions(lock_policy.LOCK_ONLY)
    assert lock_policy.literals(stated["owner"]) == [notation.OWNER]
    assert lock_policy.literals(stated["odd"]) == [f"{notation.ESCAPED}|{notation.NEWER}"]
    assert notation.OWNER.startswith(rescue._PAUSE.pattern.removesuffix('manual"'))


def nodes_named(owners: Any) -> set[str]:
    """The owners that are names of Nodes."""
    return {each for owner in owners if owner not in ("", "manual") for each in nodes_of(json.dumps({"nodeID": owner}))}


def nodes_of(text: str) -> tuple[str, ...]:
    content = notation.parse(text)
    return content.nodes if isinstance(content, LockContent) else ()


def disagreement(text: str) -> str:
    """How policy and agent read the text differently; "" if they agree."""
    seen, content = lock_policy.reading(text, text, "n00"), notation.parse(text)
    owners = seen["ownersAfter"]
    if isinstance(content, Garbage):
        return ""  # no agent starts or writes
    if seen["isOddAfter"]:
        return "careen reads what the policy calls unreadable"
    if set(content.nodes) != nodes_named(owners):
        return f"careen sees the holders {content.nodes}, the policy {owners}"
    if content.is_paused != ("manual" in owners):
        return "they disagree about the pause"
    if rescue.is_paused(text) != content.is_paused:
        return "the rescue reads another pause"
    if any(lock_policy.may_evict(text, node) != (node in content.nodes) for node in ("n00", "n00.a")):
        return "an eviction and careen disagree about the claim"
    return ""


def plain_readers(text: str) -> list[set[str]] | None:
    """The owners that a simple JSON parser sees, where it takes the last and where it takes the first of repeated keys,
    and that of kured, for which a key in other letters is the same; None if the text is no JSON."""

    def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs))

    def of_go(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known = {each.casefold(): each for each in ("nodeID", "locks")}
        return {known.get(key.casefold(), key): value for key, value in pairs}

    try:
        read = [json.loads(text, object_pairs_hook=hook) for hook in (dict, first, of_go)]
    except (ValueError, RecursionError):
        return None
    return [_owners_of(each) for each in read]


def _owners_of(record: Any) -> set[str]:
    rows = [record, *(record.get("locks") or [])] if isinstance(record.get("locks"), list | None) else [record]
    found = (row.get("nodeID") for row in rows if isinstance(row, dict))
    return {name for name in found if isinstance(name, str) and name}


UNSETTLED = (
    an_owner(selector='app in (a,b),"nodeID"', parent="{[%"),
    an_owner(name="manual", uid='"nodeID":"manual"'),
)


def honest_writes(content: LockContent) -> list[LockContent]:
    """What the agent of n00 writes: a claim, its release, a mark, the removal of a stale claim, workloads that did not
    recover."""
    added = changes.add(content, an_entry("n00", "c9"), 9)
    mine = changes.put_back(content, an_entry("n00", "c9"), 9)
    stale = content.entries[:1]
    return [
        *([added] if added else []),
        mine,
        changes.mark_failed(mine, "n00", "c9", "never-ready"),
        changes.released(changes.remove(mine, "n00", "c9"), "2026-03-04T12:00:00Z"),
        changes.remove_all(content, stale),
        content.with_line(Line(names=("n01",), at="2026-03-04T12:00:00Z", waiting=1)),
        replace(mine, unsettled=UNSETTLED),
    ]


def test_policy_and_agents_see_the_same_owners_in_any_text() -> None:
    readable = 0
    for seed in range(TEXTS):
        text = hostile_lock(Random(seed))
        assert disagreement(text) == "", (seed, text)
        readable += isinstance(notation.parse(text), LockContent)
    assert readable > TEXTS / 6, "too few of the texts are readable"


def test_the_policy_lets_in_whatever_an_agent_writes_over_any_readable_text() -> None:
    for seed in range(TEXTS):
        text = hostile_lock(Random(seed))
        content = notation.parse(text)
        if isinstance(content, LockContent):
            for wanted in honest_writes(content):
                written = notation.render(wanted)
                assert lock_policy.refusal(text, written, "n00") == "", (seed, text, written)


def test_workloads_that_did_not_recover_are_the_same_after_they_were_written() -> None:
    text = notation.render(LockContent(unsettled=UNSETTLED))
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert content.unsettled == UNSETTLED
    assert not content.is_paused
    assert lock_policy.refusal(None, text, "n00") == ""


@pytest.mark.parametrize("written", [["no JSON"], ["[1]"], [["ReplicaSet"]], "text", {"a": 1}, [None]])
def test_workloads_that_cannot_be_read_leave_the_rest_of_the_lock_as_it_is(written: object) -> None:
    text = json.dumps({"nodeID": "n01", "locks": [{"nodeID": "n01"}], "unsettled": written})
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert (content.unsettled, content.holders) == ((), ("n01",))


def test_whatever_the_policy_lets_in_has_no_hidden_owner_for_any_reader() -> None:
    let_in = 0
    for seed in range(TEXTS):
        text = hostile_lock(Random(seed))
        everybody = json.dumps({"nodeID": "", "locks": [{"nodeID": name} for name in ("n01", "n02", "n00.a")]})
        if lock_policy.refusal(everybody, text, "n00"):
            continue
        let_in += 1
        owners = {owner for owner in lock_policy.reading(text, text, "n00")["ownersAfter"] if owner}
        assert "manual" not in owners
        read = plain_readers(text)
        assert read is None or all(each == owners for each in read), (seed, text)
        content = notation.parse(text)
        assert isinstance(content, LockContent), (seed, text)
        assert not content.is_paused
        assert set(content.nodes) == nodes_named(owners)
    assert let_in > TEXTS / 20, "the policy lets in too few of the texts"


PAUSED = '{"nodeID":"manual","metadata":{"unschedulable":false},"locks":[{"nodeID":"manual"}]}'
HIDDEN_PAUSES = {
    "the last of repeated keys": '{"nodeID":"manual","nodeID":""}',
    "the first of repeated keys": '{"nodeID":"","nodeID":"manual"}',
    "an object that careen does not know": '{"nodeID":"","was":{"nodeID":"manual"}}',
    "a list that careen does not know": '{"nodeID":"","was":[{"nodeID":"manual"}]}',
    "a later item of such a list": '{"nodeID":"","was":[5,{"a":{}},{"nodeID":"manual"}]}',
    "an object of an item": '{"nodeID":"","locks":[{"nodeID":"n00","was":{"nodeID":"manual"}}]}',
    "a list `locks` in another object": '{"nodeID":"","metadata":{"locks":[{"nodeID":"manual"}]}}',
    "the first of two lists `locks`": '{"nodeID":"","locks":[{"nodeID":"manual"}],"locks":[]}',
    "an item after a number": '{"nodeID":"","locks":[5,{"nodeID":"manual"}]}',
    "a list in the list": '{"nodeID":"","locks":[[{"nodeID":"manual"}]]}',
}


@pytest.mark.parametrize("text", HIDDEN_PAUSES.values(), ids=HIDDEN_PAUSES)
def test_a_pause_counts_wherever_it_is_and_no_token_can_hide_it(text: str) -> None:
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert content.is_paused
    assert lock_policy.refusal(PAUSED, text, "n00") != ""


@pytest.mark.parametrize("text", [text.replace("manual", "n01") for text in HIDDEN_PAUSES.values()], ids=HIDDEN_PAUSES)
def test_a_claim_counts_wherever_it_is(text: str) -> None:
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert "n01" in content.nodes


@pytest.mark.parametrize("name", ["locks", "nodeID", "nodeid", "form", "manual"])
def test_a_text_may_be_the_name_of_a_key(name: str) -> None:
    """A Node, a zone, a group, or the reason that a person gives."""
    own = an_entry(name.lower() if name != "manual" else "n01", "c", zone=name, groups=(name,))
    paused = changes.pause(held(own).with_line(Line(names=(name,), at="2026-03-04T12:00:00Z")), name, 2)
    text = notation.render(paused)
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert (content.entries, content.pause_reason, content.line) == (paused.entries, name, paused.line)
    assert lock_policy.refusal(text, text, "n00") == ""


@pytest.mark.parametrize("text", ['{"nodeID":"","NODEID":"n00"}', '{"nodeID":"n00","Locks":[],"locks":[]}'])
def test_no_token_can_write_a_key_that_only_kured_reads(text: str) -> None:
    assert lock_policy.refusal(None, text, "n00") == "write the lock only in a form that all its readers read alike"


DISGUISED = {
    "an escaped key": '{"\\u006eodeID":"manual"}',
    "an escaped key in the list": '{"nodeID":"","locks":[{"node\\u0049D":"n01"}]}',
    "an escaped list": '{"nodeID":"","l\\u006Fcks":[{"nodeID":"n01"}]}',
    "an escaped pause": '{"nodeID":"m\\u0061nual"}',
    "another version": '{"nodeID":"n00","form":3}',
}


@pytest.mark.parametrize("text", DISGUISED.values(), ids=DISGUISED)
def test_a_lock_with_disguised_owners_is_unreadable_for_agent_and_policy(text: str) -> None:
    assert isinstance(notation.parse(text), Garbage)
    assert lock_policy.refusal(text, None, "n00") == "not replace a lock that no agent can read"
    assert lock_policy.refusal(None, text, "n00") != ""
    assert not lock_policy.may_evict(text, "n00")


def test_a_name_with_an_escaped_digit_is_no_name_for_agent_and_policy() -> None:
    text = '{"nodeID":"","locks":[{"nodeID":"n\\u0030\\u0031"}]}'
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert content.holders == ("unreadable entry 1",)
    assert not lock_policy.may_evict(text, "n01")


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\f", "\v", "\x1c", "\ufeff"])
def test_only_the_white_space_of_json_is_an_empty_lock(blank: str) -> None:
    assert isinstance(notation.parse(blank), Garbage)
    assert isinstance(notation.parse(blank + '{"nodeID":"manual"}'), Garbage)


def test_no_text_of_careens_form_contains_an_escape_or_a_bracket_in_a_string() -> None:
    for seed in range(500):
        text = canonical_lock(Random(seed))
        assert "\\" not in text
        strings = text.split('"')[1::2]
        assert not [each for each in strings if set(each) & set("[]{}")]
        again = notation.parse(text)
        assert isinstance(again, LockContent)
        assert (notation.render(again) or "") == text


@pytest.mark.parametrize("reason", ['für "db"', "100 %", "a\\b", '{"nodeID":"n01"}', "\U0001f4a5", "plain", "%41"])
def test_a_reason_of_a_person_is_the_same_after_it_was_written(reason: str) -> None:
    paused = notation.parse(notation.render(changes.pause(LockContent(), reason, 1)))
    assert isinstance(paused, LockContent)
    assert paused.pause_reason == reason


KUREDS = {
    "one owner": '{"nodeID":"n00","metadata":{"unschedulable":true},"created":"2024-07-17T12:40:44.9Z","TTL":0}',
    "several owners": '{"maxOwners":2,"locks":[{"nodeID":"n01","metadata":{"unschedulable":false},"created":"2024-07-17'
    'T12:40:44Z","TTL":1800000000000},{"nodeID":"n00","metadata":{"unschedulable":false},"created":"x","TTL":0}]}',
    "no owner": '{"maxOwners":2,"locks":null}',
    "the previous form": '{"nodeID":"n00","metadata":{"unschedulable":false},"created":"2026-03-04T11:59:00Z","TTL":0,'
    '"maxOwners":2,"locks":[{"nodeID":"n00","metadata":{"unschedulable":false},"created":"2026-03-04T11:59:00Z","TTL":'
    '0,"id":"c","uid":"u","groups":["zone=a"],"boot":"b","cordoned":false,"limit":2,"zone":"a","overdue":{"phase":"",'
    '"since":"2026-03-04T11:59:00Z"}}],"reason":"f\\u00fcr \\"db\\", bald","next":["n01"],"passed":["n02"]}',
}


@pytest.mark.parametrize("text", KUREDS.values(), ids=KUREDS)
def test_the_policy_lets_in_the_forms_of_kured_and_of_the_previous_release(text: str) -> None:
    assert lock_policy.refusal('{"locks":[{"nodeID":"n01"}]}', text, "n00") == ""
    assert disagreement(text) == ""


def test_the_policy_lets_in_no_text_that_the_agents_cannot_read() -> None:
    let_in = 0
    for seed in range(2 * TEXTS):
        text = broken_lock(Random(seed), KUREDS.values())
        if lock_policy.refusal(text, text, "n00"):
            continue
        let_in += 1
        assert isinstance(notation.parse(text), LockContent), (seed, text)
    assert let_in > TEXTS / 4, "the policy lets in too few of the texts"


# Bounds -----------------------------------------------------------------------------------------------------------

ANNOTATIONS = 256 * 1024


def filled(name_length: int, **changed: Any) -> LockContent:
    """The lock after as many nodes as possible took a claim."""
    content = LockContent()
    for number in range(2_000):
        name = f"node-{number:04}".ljust(name_length, "x")
        uid = "0" * 36
        added = changes.add(content, an_entry(name, uid, uid=uid, boot=uid, groups=("zone=zone-a",), **changed), 2_000)
        if added is None:
            return content
        content = added
    raise AssertionError("the lock takes any number of claims")


@pytest.mark.parametrize("name_length", [9, 63, 253])
def test_a_full_lock_takes_no_more_claims_and_still_has_room_for_all_else(name_length: int) -> None:
    content = filled(name_length)
    count = len(content.entries)
    assert count <= lock.MOST_CLAIMS
    assert count > (250 if name_length == 253 else 350)
    assert lock.free_slots(content, 2_000) == 0
    assert lock.limit(content, 2_000) == count
    names = tuple(f"next-{number:04}".ljust(name_length, "y") for number in range(256 if name_length < 100 else 40))
    mark = lock.Overdue(phase="Verifying", since="2026-03-04T12:00:00Z")
    marked = [
        Entry(**{**{key: getattr(each, key) for key in each.__struct_fields__}, "overdue": mark})
        for each in content.entries[:200]
    ]
    everything = changes.pause(
        LockContent(
            entries=(*marked, *content.entries[200:], an_entry("put-back", "c")),
            line=Line(names=names, at="2026-03-04T12:00:00Z", waiting=9_999, passed=names),
            unsettled=tuple(an_owner(name=f"workload-{number:02}", parent="p" * 36) for number in range(50)),
            released_at="2026-03-04T12:00:00Z",
            max_owners=2_000,
        ),
        "ü" * 1_000,
        2_000,
    )
    text = notation.render(everything) or ""
    assert len(text) < ANNOTATIONS - 8 * 1024
    assert notation.parse(text) == notation.parse(notation.render(notation.parse(text)))  # type: ignore[arg-type]
    released = changes.remove(content, content.entries[0].node, content.entries[0].id)
    assert lock.free_slots(released, 2_000) >= 1


def test_the_lock_allows_no_more_claims_than_it_can_hold() -> None:
    assert lock.limit(LockContent(), 10**6) == lock.MOST_CLAIMS
    assert lock.limit(held(an_entry(limit=10**6)), 10**6) == lock.MOST_CLAIMS


def test_a_lock_with_more_entries_than_fit_is_unreadable() -> None:
    rows = [{"nodeID": f"n{number}"} for number in range(1_001)]
    assert isinstance(notation.parse(json.dumps({"locks": rows[:1_000]})), LockContent)
    too_many = notation.parse(json.dumps({"locks": rows}))
    assert isinstance(too_many, Garbage)
    assert "1001 entries" in too_many.why
    assert isinstance(notation.parse(json.dumps({"locks": [5] * 50_000})), Garbage)


def test_a_thousand_unreadable_entries_fit_into_the_annotation() -> None:
    content = notation.parse(json.dumps({"locks": [{"x": '"' * 100} for _ in range(1_000)]}))
    assert isinstance(content, LockContent)
    assert len(content.holders) == 1_000
    assert len(notation.render(content) or "") < ANNOTATIONS
