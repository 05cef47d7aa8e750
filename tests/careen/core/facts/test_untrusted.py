"""Invalid content on Nodes and in the lock. Every function that reads such content returns a value and raises no error.
Invalid content of one node never stops the agents of other nodes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from careen.core.decide import decide
from careen.core.decision import stored_refusals
from careen.core.facts import keys
from careen.core.facts.observation import Holders, NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Budget, BudgetKind, Order
from careen.core.facts.progress import Progress, UnreadableProgress, from_annotation, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.times import EARLIEST, LATEST, from_rfc3339, rfc3339
from careen.core.facts.untrusted import fields_of, json_of, number, object_of, short, shown, whole
from careen.core.gates.hold import held_because, until_of
from careen.core.gates.maintenance_window import is_waived
from careen.core.gates.minimum_interval import last_reboot
from careen.core.lock import content as lock
from careen.core.lock import notation, order
from careen.core.lock.content import LockContent
from careen.plan.measured_durations import measured_boots
from careen.plan.next_turn import next_turn
from careen.plan.waiters import Waiters
from careen.report.fleet_report import fleet_json, fleet_text
from careen.report.gate_answers import NodeStory
from careen.report.why_report import why_json, why_text
from scheduler_core.values import Value
from tests.careen.core.builders import (
    NOW,
    UPTIME,
    a_fleet,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    a_reading,
    an_entry,
    an_observation,
    held,
)

HUGE = "9" * 400
INSTANTS = [
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:59Z",
    "1969-12-31T23:59:59Z",
    "2200-01-01T00:00:01Z",
    "2026-02-30T00:00:00Z",
    "2026-03-04T12:00:00",
    "0000-00-00T00:00:00Z",
    "tomorrow",
    "",
    "\ud800",
    HUGE,
]
POISON = [
    "",
    "{",
    "null",
    "[]",
    "7",
    HUGE,
    '"\\ud800"',
    "[" * 5_000,
    '{"version":' * 2_000,
    "\x00",
    "x" * 300_000,
    '{"version":1,"phase":"Draining","claim":"c","boot_left":"b","drain_started":{"boot":"b","uptime":' + HUGE + "}}",
    '{"version":1,"phase":"Waiting","claimed":{"boot":"b","uptime":1e999}}',
    '{"version":1,"phase":"Waiting","claimed":{"boot":"b","uptime":NaN}}',
    '{"version":1,"phase":"Waiting","failures":' + HUGE + "}",
    '{"version":1,"phase":"Failed","failures":-5}',
    '{"version":true}',
    '{"version":-1}',
    '{"version":1,"phase":"Waiting","need_since":"0001-01-01T00:00:00+23:59"}',
    '{"version":1,"phase":"Waiting","need_since":"9999-12-31T23:59:59-23:59"}',
    '{"version":1,"phase":"Waiting","need_since":"\\ud800"}',
    '{"version":1,"owners":[["a","b","c","d",1,1,' + HUGE + "]]}",
    '[{"gate":"hold","code":"held","sentence":"s","since":"0001-01-01T00:00:00+23:59"}]',
    '[{"gate":"hold","code":["held"],"sentence":{},"since":5}]',
    '{"at":"9999-12-31T23:59:59-23:59","seconds":' + HUGE + "}",
    '{"at":"0001-01-01T00:00:00+23:59","seconds":1e999}',
    '{"at":5,"seconds":true}',
    "until=9999-12-31T23:59:59-23:59",
    "until=0001-01-01T00:00:00+23:59",
]
ANNOTATIONS = [
    keys.PROGRESS,
    keys.REFUSALS,
    keys.LAST_REBOOT,
    keys.FORECAST,
    keys.MOVES,
    keys.MOVES_IN_ZONE,
    keys.SINCE,
    keys.PHASE,
    keys.REASON,
    keys.HOLD,
    keys.REBOOT_NOW,
    keys.RETRY,
    keys.KURED_IN_PROGRESS,
    keys.KURED_MOST_RECENT,
]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*INSTANTS, *Phase, *Code, "c1", "boot-1"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *Progress.__dataclass_fields__,
                    "version",
                    "boot",
                    "uptime",
                    "gate",
                    "code",
                    "sentence",
                    "since",
                    "at",
                    "seconds",
                    "pods",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)
records = st.dictionaries(st.sampled_from(list(Progress.__dataclass_fields__)), values, max_size=6).map(
    lambda given: json.dumps({"version": 1, **given})
)
texts = st.sampled_from(POISON) | st.text(max_size=40) | values.map(json.dumps) | records
poisoned = st.dictionaries(st.sampled_from(ANNOTATIONS), texts, min_size=1)


@pytest.mark.parametrize("text", INSTANTS)
def test_a_time_outside_the_accepted_range_is_read_as_none(text: str) -> None:
    assert from_rfc3339(text) is None


@given(st.text() | st.datetimes(timezones=st.timezones()).map(datetime.isoformat) | st.integers() | st.none())
def test_every_accepted_time_allows_arithmetic(text: Any) -> None:
    at = from_rfc3339(text)
    if at is not None:
        assert EARLIEST <= at <= LATEST
        for span in (timedelta(days=365 * 290), timedelta(days=-365 * 290)):
            assert from_rfc3339(rfc3339(at)) is not None
            assert at + span - at == span


@given(texts)
def test_parsed_json_can_be_written_again(text: str) -> None:
    value = json_of(text)
    json.dumps(value).encode()
    assert isinstance(object_of(text), dict)
    assert len(shown(value)) <= 60
    assert len(short(text, 50)) <= 50
    for read in (whole(value, 100), number(value, 100.0)):
        assert read is None or 0 <= read <= 100


class Parcel(Value, kw_only=True, rename="camel"):
    sent_by: str = "nobody"
    weight: int = 1
    stamps: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("record", "read", "unreadable"),
    [
        ({"sentBy": "n1", "weight": 2, "stamps": ["a"]}, Parcel(sent_by="n1", weight=2, stamps=("a",)), ()),
        ({"sentBy": None, "colour": "red", "sent_by": "n1"}, Parcel(), ()),
        ({"stamps": [1], "weight": True, "sentBy": "n1"}, Parcel(sent_by="n1"), ("weight", "stamps")),
        ({"weight": 1.0}, Parcel(), ("weight",)),
        ({"weight": 10**400}, Parcel(weight=10**400), ()),
        (["sentBy"], Parcel(), ()),
        (None, Parcel(), ()),
    ],
)
def test_an_unreadable_field_changes_no_other_field(record: Any, read: Parcel, unreadable: tuple[str, ...]) -> None:
    assert fields_of(record, Parcel) == (read, unreadable)


@pytest.mark.parametrize(("levels", "is_read"), [(50, True), (51, False), (900, False)])
def test_json_is_read_up_to_a_fixed_depth(levels: int, is_read: bool) -> None:
    assert (json_of("[" * levels + "1" + "]" * levels) is not None) is is_read
    assert (json_of('{"a":' * levels + "1" + "}" * levels) is not None) is is_read


@given(texts)
def test_a_readable_progress_record_has_only_finite_times(text: str) -> None:
    found = from_annotation(text)
    if isinstance(found, UnreadableProgress):
        assert 0 < len(found.why) <= 1000
        found.why.encode()
    else:
        assert from_annotation(to_annotation(found)) == found
        for mark in (found.claimed, found.drain_started, found.failed_at):
            assert mark is None or math.isfinite(UPTIME - mark.uptime)


@pytest.mark.parametrize("text", [text for text in POISON if HUGE in text and text.startswith('{"version"')])
def test_a_number_of_400_digits_makes_a_progress_record_unreadable(text: str) -> None:
    assert isinstance(from_annotation(text), UnreadableProgress)


@settings(deadline=None)
@given(poisoned)
def test_every_reader_of_annotations_returns_a_value_for_any_content(annotations: dict[str, str]) -> None:
    node = a_node("n2", annotations=annotations)
    assert len(held_because(node, NOW)) <= 1100
    for instant in (
        last_reboot(node),
        until_of(node.annotations.get(keys.HOLD, "")),
        *(each.since for each in stored_refusals(node)),
    ):
        assert instant is None or EARLIEST <= instant <= LATEST
    assert all(len(each.sentence) <= 1000 for each in stored_refusals(node))
    assert is_waived(node, NOW) in (True, False)
    assert 0 <= order.moves_in_zone(node) <= order.moves(node)
    assert from_rfc3339(order.need_since(node)) is not None or order.need_since(node) == "9999"
    assert all(seconds > 0 for seconds in measured_boots([node], drain_seconds=60.0).of.values())
    progress = from_annotation(annotations.get(keys.PROGRESS))
    if isinstance(progress, Progress) and progress.phase in ("", *Phase):
        assert math.isfinite(next_turn(node, progress, LockContent(), a_policy(), NOW).seconds)


# The annotations of the node n2 may contain any text. The waiting nodes can still be sorted.
@settings(deadline=None)
@given(poisoned, st.sampled_from(list(Order)))
def test_waiting_nodes_can_be_sorted_with_any_annotations(annotations: dict[str, str], by: Order) -> None:
    policy = a_policy(order=by)
    others = [a_marked_node(a_progress(Phase.WAITING), name=f"n{number}", label="ready") for number in (1, 3)]
    sick = a_node("n2", labels={keys.REBOOT_LABEL: "ready"}, annotations=annotations)
    names = [node.name for node in order.next_nodes([*others, sick], LockContent(), policy)]
    assert sorted(names) == ["n1", "n2", "n3"]
    assert Waiters([*others, sick], policy).short_list(names, LockContent(), lambda _: 1)


# The annotations of the node n2 may contain any text. `careen status` and `careen why` still show the node.
@settings(deadline=None)
@given(poisoned)
def test_commands_show_a_node_with_any_annotations(annotations: dict[str, str]) -> None:
    sick, well = a_node("n2", annotations=annotations), a_node("n1")
    content = held(an_entry("n2", "c2"))
    text = fleet_text([well, sick], content, NOW)
    assert "n1" in text
    assert "n2" in text
    json.dumps(fleet_json([well, sick], content), default=str)
    story = NodeStory(node=sick, lock=content, agents=(), now=NOW, holders=[sick], policy=a_policy())
    assert why_text(story)
    json.dumps(why_json(story), default=str)


def test_the_status_shows_why_a_progress_record_is_unreadable() -> None:
    sick = a_node(
        "n2",
        annotations={
            keys.PROGRESS: '{"version":1,"claimed":{"boot":"b","uptime":' + HUGE + "}}",
            keys.PHASE: "Draining",
        },
    )
    assert "is not a record of version 1: Number out of range - at `$.claimed.uptime`" in fleet_text(
        [sick], LockContent(), NOW
    )


def test_the_status_says_once_why_a_record_is_unreadable() -> None:
    record = {keys.PROGRESS: "{nonsense"}
    why = decide(an_observation(a_node("n2", annotations=record)), a_policy()).reason.sentence
    told = a_node("n2", annotations={**record, keys.REASON: why})
    assert fleet_text([told], LockContent(), NOW).count("is not JSON that careen wrote") == 1


# Decisions --------------------------------------------------------------------------------------------------------

POLICIES = (
    a_policy(),
    a_policy(
        order=Order.ZONE,
        concurrency=3,
        minimum_interval_seconds=3600.0,
        budgets=(Budget(kind=BudgetKind.ZONE, limit=1),),
    ),
)


def beside(own: NodeView, other: NodeView) -> dict[str, Any]:
    """Return keyword arguments of `an_observation` for the agent of the Node `own`. Every list of nodes that this agent
    has read contains the Node `other`."""
    return {"fleet": a_fleet(own, other), "peers": (other,), "waiters": (other,), "holders": Holders(nodes=(other,))}


def own_node(phase: Phase) -> tuple[NodeView, tuple[Any, ...]]:
    """Return two values: the Node of a node in this phase, and the claims of this node in the lock (one or none)."""
    progress = a_progress(
        phase, failed=Code.SETTLE_TIMEOUT if phase is Phase.FAILED else "", taint_key=keys.DEFAULT_TAINT_KEY
    )
    entries = (an_entry(claim="c1", boot=progress.boot_left),) if progress.claim else ()
    taint = Taint(key=keys.DEFAULT_TAINT_KEY, effect=keys.TAINT_EFFECT)
    return a_marked_node(progress, taints=(taint,), **({"label": "ready"} if phase is Phase.WAITING else {})), entries


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.sampled_from(list(Phase)), poisoned, st.sampled_from(POLICIES), st.booleans())
def test_every_unreadable_progress_record_has_the_same_effect_on_other_nodes(
    phase: Phase, annotations: dict[str, str], policy: Any, has_claim: bool
) -> None:
    """If the progress record of a Node is unreadable, the agents of other nodes assume that careen works on this node,
    whatever the Node's other annotations contain."""
    assume(isinstance(from_annotation(annotations.get(keys.PROGRESS)), UnreadableProgress))
    own, entries = own_node(phase)
    content = held(*entries, *((an_entry("n2", "c2"),) if has_claim else ()))
    told = []
    for given_annotations in (annotations, {keys.PROGRESS: "?"}):
        other = a_node("n2", labels={keys.REBOOT_LABEL: "in-progress"}, annotations=given_annotations)
        told.append(decide(an_observation(own, lock=content, **beside(own, other)), policy))
    assert told[0] == told[1]


# For any text in the annotations of the agent's own Node, the agent returns a decision and raises no error. In this
# test, the progress record is valid, and every other annotation may contain any text. Each annotation that the decision
# writes is shorter than 60,000 characters.
@settings(deadline=None)
@given(
    st.sampled_from(list(Phase)), st.dictionaries(st.sampled_from(ANNOTATIONS[1:]), texts), st.sampled_from(POLICIES)
)
def test_the_agent_decides_whatever_the_other_annotations_of_its_node_contain(
    phase: Phase, annotations: dict[str, str], policy: Any
) -> None:
    own, entries = own_node(phase)
    own = replace(own, annotations={**own.annotations, **annotations})
    decision = decide(an_observation(own, lock=held(*entries)), policy)
    assert all(
        len(text or "") < 60_000 for action in decision.actions for text in getattr(action, "annotations", {}).values()
    )


# For any text in the progress record of the agent's own Node, the agent returns a decision and raises no error.
@settings(deadline=None)
@given(st.sampled_from(list(Phase)), texts)
def test_the_agent_decides_whatever_the_progress_record_of_its_node_contains(phase: Phase, text: str) -> None:
    own, entries = own_node(phase)
    decide(
        an_observation(replace(own, annotations={**own.annotations, keys.PROGRESS: text}), lock=held(*entries)),
        a_policy(),
    )


# For any JSON values in the lock entries of other nodes, the agent returns a decision and raises no error.
@settings(deadline=None)
@given(st.sampled_from(list(Phase)), st.lists(values, max_size=3))
def test_the_agent_decides_whatever_the_lock_entries_of_other_nodes_contain(phase: Phase, rows: list[Any]) -> None:
    """No content of the entries prevents a decision. The agent treats unreadable entries as claims, and the lock still
    confirms the claim of the agent's own node."""
    own, entries = own_node(phase)
    record = json.loads(notation.render(held(*entries)) or '{"locks":[]}')
    text = json.dumps({**record, "locks": [*record["locks"], *rows], "maxOwners": 9})
    content = notation.parse(text)
    assert isinstance(content, LockContent) or any(type(value) is float for value in rows) or not json_of(text)
    decision = decide(an_observation(own, lock=a_reading(text)), a_policy(concurrency=1))
    if entries and isinstance(content, LockContent) and not content.is_paused:
        assert lock.confirms(a_reading(text).content, "n1", "c1")
    if rows and phase is Phase.WAITING:
        assert decision.phase is not Phase.CLAIMING, "the node claims although unreadable claims fill the lock"


def test_a_hold_annotation_stops_a_drain_although_another_node_has_invalid_annotations() -> None:
    own, entries = own_node(Phase.DRAINING)
    own = replace(
        own, annotations={**own.annotations, keys.HOLD: "wait", keys.REFUSALS: POISON[22], keys.LAST_REBOOT: POISON[24]}
    )
    other = a_node(
        "n2", annotations={keys.PROGRESS: POISON[11], keys.REFUSALS: POISON[22], keys.LAST_REBOOT: POISON[24]}
    )
    decision = decide(an_observation(own, lock=held(*entries), **beside(own, other)), a_policy())
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.HELD)
