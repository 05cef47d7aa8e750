"""The text of the lock annotation, and the questions about its content. careen reads both formats that kured writes,
and kured in both modes sees a claim of careen as a held lock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.lock import changes, notation
from careen.core.lock import content as lock
from careen.core.lock.content import Garbage, LockContent
from careen.core.lock.line import Line
from tests.careen.core.builders import UNREADABLE_ROWS, a_reading, an_entry, held

SINGLE = '{"nodeID":"n9","metadata":{"unschedulable":true},"created":"2024-07-17T12:40:44.917242595Z","TTL":0}'
MULTI = (
    '{"maxOwners":2,"locks":[{"nodeID":"n8","metadata":{"unschedulable":false},'
    '"created":"2024-07-17T12:40:44Z","TTL":1800000000000},{"nodeID":"n9"}]}'
)


def understood(content: str | None) -> LockContent:
    found = notation.parse(content)
    assert isinstance(found, LockContent), found
    return found


@pytest.mark.parametrize(
    "text", [None, "", "  ", '{"maxOwners":2,"locks":[]}', '{"maxOwners":2,"locks":null}', '{"nodeID":""}']
)
def test_an_empty_lock_of_careen_or_kured_has_no_holders(text: str | None) -> None:
    assert understood(text).holders == ()
    assert lock.free_slots(understood(text), 1) == 1


def test_kureds_lock_for_one_node_is_read_as_the_claim_of_an_already_cordoned_node() -> None:
    (entry,) = understood(SINGLE).entries
    assert (entry.node, entry.id, entry.cordoned) == ("n9", "", True)


def test_kureds_lock_for_several_nodes_is_read_with_its_limit() -> None:
    content = understood(MULTI)
    assert content.holders == ("n8", "n9")
    assert content.max_owners == 2


def test_the_top_level_node_id_of_kureds_lock_is_read_as_a_holder() -> None:
    assert understood('{"nodeID":"n1","maxOwners":2,"locks":[{"nodeID":"n2"}]}').holders == ("n1", "n2")


@pytest.mark.parametrize(
    "text",
    [
        '{"nodeID":"manual"}',
        '{"maxOwners":2,"locks":[{"nodeID":"manual"}]}',
        '{"nodeID":"manual","locks":[{"nodeID":"n1"}],"maxOwners":3}',
    ],
)
@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_kureds_manual_lock_is_read_as_a_pause_at_any_concurrency(text: str, concurrency: int) -> None:
    assert understood(text).is_paused
    assert lock.free_slots(understood(text), concurrency) == 0
    assert changes.add(understood(text), an_entry(), concurrency) is None


@pytest.mark.parametrize(
    "text",
    [
        "reboot later",
        "[]",
        "null",
        "3",
        '{"owner":"n1"}',
        '{"nodeID":7}',
        '{"locks":{}}',
        '{"nodeID":"","next":[1]}',
        '{"maxOwners":"2","locks":[]}',
        "[" * 100_000,
    ],
)
def test_invalid_lock_content_is_refused_with_a_reason(text: str) -> None:
    assert isinstance(notation.parse(text), Garbage)


def test_a_claim_is_written_into_the_lock_in_the_documented_format() -> None:
    entry = an_entry("n1", "c1", groups=("zone=a",), cordoned=True)
    content = changes.add(LockContent(), entry, 2)
    assert content is not None
    text = notation.render(content.with_line(Line(names=("n2", "n3"), at="2026-03-04T12:00:00Z", waiting=7)))
    assert text is not None
    assert json.loads(text) == {
        "nodeID": "n1",
        "metadata": {"unschedulable": True},
        "created": "2026-03-04T11:59:00Z",
        "TTL": 0,
        "form": 2,
        "maxOwners": 2,
        "locks": [
            {
                "nodeID": "n1",
                "metadata": {"unschedulable": True},
                "created": "2026-03-04T11:59:00Z",
                "TTL": 0,
                "id": "c1",
                "uid": "uid-n1",
                "groups": ["zone=a"],
                "boot": "boot-1",
                "cordoned": True,
                "limit": 2,
                "zone": "",
            }
        ],
        "next": ["n2", "n3"],
        "nextAt": "2026-03-04T12:00:00Z",
        "waiting": 7,
    }


def test_removing_the_last_claim_removes_the_lock_annotation() -> None:
    assert notation.render(changes.remove(held(an_entry()), "n1", "c1")) is None


def test_a_claim_written_by_an_older_release_has_an_unknown_zone() -> None:
    assert understood('{"nodeID":"n1","locks":[{"nodeID":"n1","id":"c1"}]}').entries[0].zone is None


@pytest.mark.parametrize(
    ("node", "names", "abreast"),
    [("n1", ("n2", "n3"), 1), ("n2", ("n1", "n3"), 1), ("n3", ("n1", "n2"), 2), ("n9", ("n1", "n2", "n3"), 2)],
)
def test_the_number_of_nodes_that_may_claim_decreases_when_one_of_these_nodes_leaves_the_line(
    node: str, names: tuple[str, ...], abreast: int
) -> None:
    """The first two of the three nodes in the line may take a claim now. After n1 or n2 has left the line, only one
    node may take a claim. After n3 has left the line, n1 and n2 may still take a claim."""
    line = Line().naming(("n1", "n2", "n3"), at="t", waiting=3, abreast=2)
    left = understood(notation.render(LockContent(line=line.without(node))))
    assert (left.line.names, left.line.abreast) == (names, abreast)
    assert Line().naming(("n1",), at="t", waiting=1).without("n1").abreast is None


def test_a_lock_that_lists_only_waiting_nodes_has_a_ttl_for_kured() -> None:
    text = notation.render(LockContent(line=Line(names=("n2",), at="2026-03-04T12:00:00Z")))
    assert text is not None
    assert json.loads(text)["TTL"] == 600 * 10**9
    assert json.loads(text)["nodeID"] == ""


@pytest.mark.parametrize(
    ("entries", "ours", "allowed"),
    [
        ([], 3, 3),
        ([an_entry("n1", limit=3)], 3, 3),
        ([an_entry("n1", limit=3)], 1, 1),
        ([an_entry("n1", limit=1)], 3, 1),
        ([an_entry("n1", limit=2), an_entry("n2", limit=3)], 3, 2),
    ],
)
def test_the_lock_allows_no_more_claims_than_the_smallest_limit_recorded_in_a_claim(
    entries: list[Any], ours: int, allowed: int
) -> None:
    """Each claim records a limit: the --concurrency of the agent that took the claim. The lock allows as many claims as
    the smallest of these limits and of the deciding agent's own --concurrency."""
    assert lock.limit(held(*entries), ours) == allowed


def test_a_lock_that_kured_wrote_allows_no_more_claims_than_kured_does() -> None:
    assert lock.limit(understood(SINGLE), 4) == 1
    assert lock.limit(understood(MULTI), 4) == 2


def test_a_claim_is_not_confirmed_if_the_lock_lacks_the_claim_or_is_paused() -> None:
    assert lock.confirms(a_reading(held(an_entry("n1", "a"))).content, "n1", "a")
    assert not lock.confirms(a_reading(held(an_entry("n1", "a"))).content, "n1", "b")
    assert not lock.confirms(a_reading(held(an_entry("n2", "a"))).content, "n1", "a")
    assert not lock.confirms(a_reading(changes.pause(held(an_entry("n1", "a")), "", 1)).content, "n1", "a")
    assert not lock.confirms(a_reading("garbage").content, "n1", "a")
    assert not lock.confirms(LockContent(), "n1", "a")


# Kured's own rules, as its Go code reads an annotation (pkg/daemonsetlock/daemonsetlock.go at 1.23).


names = st.sampled_from(["n1", "n2", "n3", "n4"])


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "nodeID",
                        "locks",
                        "maxOwners",
                        "metadata",
                        "created",
                        "TTL",
                        "id",
                        "next",
                        "groups",
                        "uid",
                        "limit",
                        "zone",
                        "abreast",
                    ]
                ),
                inner,
            )
        ),
    ).map(json.dumps)
)
def test_any_text_is_read_as_a_lock_or_refused_without_an_error(text: str) -> None:
    found = notation.parse(text)
    if isinstance(found, LockContent):
        again = notation.parse(notation.render(found))
        assert isinstance(again, LockContent)
        assert again.holders == found.holders
        assert again.is_paused == found.is_paused


def test_a_node_that_was_passed_over_stays_in_the_locks_list_until_the_node_is_ready_again() -> None:
    """A node is passed over if it is in the line and does not take a claim in time."""
    line = Line().passing_over(("n3", "n2"))
    assert understood(notation.render(held(an_entry(), line=line))).line.passed == ("n2", "n3")
    assert line.showing("n3").passed == ("n2",)


def test_two_lock_entries_of_kured_for_one_node_are_treated_as_one_holder() -> None:
    content = understood('{"maxOwners":2,"locks":[{"nodeID":"n1","created":"a"},{"nodeID":"n1","created":"b"}]}')
    assert content.holders == ("n1",)
    assert changes.release_by_hand(content, "n1").entries == ()
    assert replace(content, entries=()).holders == ()


# One unreadable entry ------------------------------------------------------------------------------------

IN_PARTS = {
    "groups": {"groups": "zone=a"},
    "metadata": {"metadata": 3},
    "id": {"id": {}},
    "uid": {"uid": 1},
    "boot": {"boot": []},
    "cordoned": {"cordoned": "yes"},
    "created": {"created": 5},
    "zone": {"zone": 1},
    "limit": {"limit": "2"},
    "a number of 400 digits as the limit": {"limit": 10**400},
    "a boolean as the limit": {"limit": True},
    "failed": {"failed": {}},
}


def beside(row: Any) -> str:
    """Return the JSON text of a lock that may contain three claims. Its entries are a valid claim of n1, and `row`."""
    return json.dumps({"nodeID": "n1", "maxOwners": 3, "locks": [{"nodeID": "n1", "id": "c1", "limit": 3}, row]})


@pytest.mark.parametrize(
    "row",
    [*UNREADABLE_ROWS.values(), *({"nodeID": "n2", **part} for part in IN_PARTS.values())],
    ids=[*UNREADABLE_ROWS, *IN_PARTS],
)
def test_an_unreadable_lock_entry_is_treated_as_a_claim_and_is_kept_in_one_escaped_string(row: Any) -> None:
    content = understood(beside(row))
    assert content.entries[0].node == "n1"
    assert len(content.holders) == 2
    assert (
        lock.free_slots(replace(content, entries=tuple(replace(each, failed="") for each in content.entries)), 3) == 1
    )
    written = notation.render(replace(content, line=replace(content.line, waiting=3)))
    carried = json.loads(written or "")["locks"][1]
    assert carried["nodeID"] in ("n2", "unreadable entry")
    assert unquote(carried["raw"]) == json.dumps(row, separators=(",", ":"))[:999] + "…" * (len(json.dumps(row)) > 1000)
    assert not set('"\\[]{}') & set(carried["raw"])
    assert understood(written).entries[1] == content.entries[1]


@pytest.mark.parametrize("row", UNREADABLE_ROWS.values(), ids=UNREADABLE_ROWS)
def test_a_single_lock_entry_is_treated_as_a_claim_even_without_a_readable_node_name(row: Any) -> None:
    alone = notation.render(changes.remove(understood(beside(row)), "n1", "c1"))
    for _ in range(3):
        assert len(understood(alone).holders) == 1
        alone = notation.render(understood(alone))
    assert lock.free_slots(understood(alone), 1) == 0


@pytest.mark.parametrize("part", IN_PARTS.values(), ids=IN_PARTS)
def test_a_partly_readable_lock_entry_keeps_its_node_name(part: dict[str, Any]) -> None:
    content = understood(beside({"nodeID": "n2", "id": "c2", **part}))
    assert content.nodes == ("n1", "n2")


def test_an_unreadable_failure_mark_in_a_claim_is_treated_as_a_failure() -> None:
    assert [entry.node for entry in understood(beside({"nodeID": "n2", "failed": {}})).failed] == ["n2"]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_nested_lock_entry_remains_the_same_claim_if_the_lock_is_readable(opening: str, closing: str) -> None:
    """The test tries entries of 1 to 1,099 levels of lists or objects. The lock's own object and its list `locks` are
    two more levels. careen might fail to write a deeply nested value, so a lock with more than 50 levels is
    unreadable. An entry of at most 40 levels therefore always leaves the lock readable."""
    for depth in range(1, 1100):
        content = notation.parse(f'{{"nodeID":"","locks":[{opening * depth}1{closing * depth}]}}')
        assert isinstance(content, Garbage) or notation.parse(notation.render(content)) == content
        assert isinstance(content, LockContent) or depth > 40


# Bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [10**6, 10**18])
def test_a_lock_with_a_limit_of_a_million_fits_into_an_annotation(most: int) -> None:
    content = changes.pause(understood(json.dumps({"maxOwners": most, "locks": []})), "x" * 10**6, 2)
    assert len(notation.render(content) or "") < 128 * 1024


def test_a_lock_with_5000_waiting_nodes_fits_into_an_annotation() -> None:
    """The lock has two lists of nodes: the line of waiting nodes, and the nodes that were passed over. The line keeps
    only its first 256 nodes. The other list is shortened too."""
    names = tuple(f"node-{number}.{'x' * 200}" for number in range(5000))
    line = Line().naming(names, at="2026-01-01T00:00:00Z", waiting=5000).passing_over(names)
    content = LockContent(line=line)
    assert len(notation.render(content) or "") < 128 * 1024
    assert content.line.names == names[:256]


def test_a_full_list_of_passed_over_nodes_keeps_the_latest_node() -> None:
    before = Line().passing_over([f"a{number}" for number in range(300)])
    assert "z" in before.passing_over(["z"]).passed


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["n1", "manual", "", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "nodeID",
                    "locks",
                    "id",
                    "uid",
                    "groups",
                    "boot",
                    "cordoned",
                    "created",
                    "limit",
                    "zone",
                    "failed",
                    "metadata",
                    "maxOwners",
                    "next",
                    "passed",
                    "waiting",
                    "abreast",
                    "reason",
                    "nextAt",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(values.map(json.dumps) | st.text(max_size=30))
def test_any_readable_lock_keeps_its_claims_when_it_is_written_again(text: str) -> None:
    """A lock that careen reads and writes again contains the same claims."""
    content = notation.parse(text)
    if isinstance(content, Garbage):
        return
    again = notation.parse(notation.render(content))
    assert isinstance(again, LockContent)
    assert len(again.entries) == len(content.entries)
    assert again.nodes == content.nodes
    assert again.is_paused == content.is_paused
    assert lock.confirms(content, "n1", "c1") in (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("2026-03-04T12:00:30Z", "2026-03-04T12:00:30Z", id="a valid time"),
        pytest.param(None, "", id="null"),
        pytest.param("soon", "", id="a text that is not a time"),
        pytest.param(7, "", id="a number"),
        pytest.param({"a": 1}, "", id="an object"),
        pytest.param("2026-03-04T12:00:30Z" + " " * 50, "", id="a time followed by 50 spaces"),
    ],
)
def test_an_invalid_expected_release_time_never_makes_a_claim_unreadable(written: Any, read: str) -> None:
    row = {"nodeID": "n1", "id": "c1", "created": "2026-03-04T11:00:00Z", "due": written}
    content = notation.parse(json.dumps({"nodeID": "n1", "locks": [row]}))
    assert isinstance(content, LockContent)
    assert [(entry.node, entry.id, entry.due, entry.unread) for entry in content.entries] == [("n1", "c1", read, "")]
    assert notation.parse(notation.render(content)) == content


def test_kured_may_take_a_released_lock_after_ten_minutes() -> None:
    text = notation.render(changes.released(LockContent(), "2026-03-04T12:00:00Z"))
    assert text is not None
    record = json.loads(text)
    assert (record["created"], record["TTL"], record["locks"]) == ("2026-03-04T12:00:00Z", 600 * 10**9, [])
    assert understood(text) == LockContent(released_at="2026-03-04T12:00:00Z", max_owners=1)


@pytest.mark.parametrize(
    "value", [7, "soon", "9" * 100, None, ["x"], {"a": 1}, "2026-03-04T12:00:00", "9999-01-01T00:00:00Z"]
)
def test_an_invalid_time_of_the_last_release_does_not_make_the_lock_unreadable(value: Any) -> None:
    assert understood(json.dumps({"nodeID": "", "locks": [], "releasedAt": value})).released_at == ""
