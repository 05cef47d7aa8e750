"""How careen writes decisions on the Node and informs people (`careen.core.outcomes`, `careen.core.decision`)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.core.actions import PatchNode, PostEvent
from careen.core.decision import Decision, Refusal, refusals_json, stored_refusals, with_since
from careen.core.drain.forecast_annotation import forecast_annotation
from careen.core.facts import keys
from careen.core.facts.observation import Taint, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import BlockingPods
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.outcomes import Status, Stay, Transition, move, stay
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import (
    NOW,
    UPTIME,
    a_marked_node,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    a_situation,
    ago,
    an_entry,
    an_observation,
    decided,
    held,
    remembering,
    the_patch,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
RECORD = a_progress(Phase.DRAINING)


def staying(
    reason: str = "old words", told: float = 3, said: str = "draining", code: Code = Code.DRAINING, **changes: Any
) -> Decision:
    node = a_marked_node(RECORD, annotations={keys.REASON: reason})
    situation = a_situation(node, memory=remembering(reported__at=UPTIME - told, reported__code=said))
    return stay(situation, Status(code, "new words", **changes), Stay(look=1.0))


def events(decision: Decision) -> list[PostEvent]:
    return [action for action in decision.actions if isinstance(action, PostEvent)]


@pytest.mark.parametrize(
    ("reason", "told", "said", "code", "is_written"),
    [
        pytest.param(
            "old words",
            2,
            "drain-started",
            Code.DRAINING,
            False,
            id="two seconds after the last report a new reason is not written yet",
        ),
        pytest.param(
            "old words",
            3,
            "drain-started",
            Code.DRAINING,
            True,
            id="three seconds after the last report a new reason is written",
        ),
        pytest.param("old words", 0, "drain-started", Code.NEED_UNKNOWN, True, id="a warning is written at once"),
        pytest.param(
            "old words",
            14,
            "draining",
            Code.DRAINING,
            False,
            id="another sentence for the same reason is not written within 14 seconds",
        ),
        pytest.param(
            "old words",
            15,
            "draining",
            Code.DRAINING,
            True,
            id="another sentence for the same reason is written after 15 seconds",
        ),
        pytest.param(
            "new words", 99, "drain-started", Code.DRAINING, False, id="an unchanged message is not written again"
        ),
    ],
)
def test_a_new_reason_code_is_written_sooner_than_a_new_sentence(
    reason: str, told: float, said: str, code: Code, is_written: bool
) -> None:
    decision = staying(reason, told, said, code)
    assert any(isinstance(action, PatchNode) for action in decision.actions) is is_written
    assert bool(events(decision)) is (is_written and said != code.value), "each new reason on the Node has one Event"


def test_a_changed_label_or_refusal_is_written_at_once() -> None:
    assert any(isinstance(action, PatchNode) for action in staying(told=0, label="failed").actions)
    assert any(
        isinstance(action, PatchNode)
        for action in staying(told=0, refusals=(Refusal(gate="hold", code=Code.HELD, sentence="x"),)).actions
    )


KEPT = '{"version":1,"settings":{}}'


@pytest.mark.parametrize(
    ("phase", "stands", "kept", "expected"),
    [
        pytest.param(
            Phase.CLAIMING, None, KEPT, {keys.SETTINGS: KEPT}, id="the patch of the claim writes the settings"
        ),
        pytest.param(Phase.REBOOTING, KEPT, KEPT, {}, id="unchanged settings are not written again"),
        pytest.param(
            Phase.REBOOTING,
            KEPT,
            "newer",
            {keys.SETTINGS: "newer"},
            id="changed settings replace the stored settings",
        ),
        pytest.param(
            Phase.REBOOTING,
            KEPT,
            "",
            {keys.SETTINGS: None},
            id="stored settings are removed if there are no settings to keep",
        ),
        pytest.param(Phase.WAITING, KEPT, KEPT, {keys.SETTINGS: None}, id="the settings are removed with the claim"),
        pytest.param(Phase.WAITING, None, KEPT, {}, id="a node without a claim stores no settings"),
    ],
)
def test_a_node_stores_its_agents_settings_only_while_the_node_holds_a_claim(
    phase: Phase,
    stands: str | None,
    kept: str,
    expected: dict[str, str | None],
) -> None:
    record = a_progress(phase)
    node = a_marked_node(record, annotations={keys.SETTINGS: stands} if stands else {})
    situation = a_situation(node, a_policy(kept_settings=kept))
    written = the_patch(move(situation, Status(Code.RETRY, "again"), Transition(phase, record))).annotations
    assert {key: value for key, value in written.items() if key == keys.SETTINGS} == expected


def test_each_new_reason_is_reported_in_one_event() -> None:
    assert [event.code for event in events(staying(said="drain-started"))] == [Code.DRAINING]
    assert events(staying(said="draining")) == []


def test_a_restarted_agent_does_not_repeat_the_last_event() -> None:
    assert events(staying(reason="new words", said="")) == []


def test_a_status_marked_as_silent_does_not_patch_the_node() -> None:
    assert not any(isinstance(action, PatchNode) for action in staying(said="drain-started", is_silent=True).actions)


def test_the_since_annotation_changes_only_with_the_phase() -> None:
    node = a_marked_node(RECORD, annotations={keys.SINCE: "2026-03-04T11:00:00Z"})
    same = move(a_situation(node), Status(Code.DRAINED, "drained"), Transition(Phase.DRAINING, RECORD))
    assert the_patch(same).annotations[keys.SINCE] == "2026-03-04T11:00:00Z"
    other = move(a_situation(node), Status(Code.REBOOT_ANNOUNCED, "reboots"), Transition(Phase.REBOOTING, RECORD))
    assert the_patch(other).annotations[keys.SINCE] == "2026-03-04T12:00:00Z"
    assert the_patch(other).annotations[keys.PHASE] == "Rebooting"


def test_a_phase_change_that_is_not_in_the_phase_table_raises_an_error() -> None:
    with pytest.raises(AssertionError, match="the table MOVES does not allow the change from Draining to Idle"):
        move(a_situation(a_marked_node(RECORD)), Status(Code.HOME, "home"), Transition(Phase.IDLE, RECORD))


def test_a_refusal_keeps_its_start_time_while_gate_and_code_are_the_same() -> None:
    stored = json.dumps([{"gate": "hold", "code": "held", "sentence": "x", "since": "2026-03-04T10:00:00Z"}])
    situation = a_situation(a_node(annotations={keys.REFUSALS: stored}))
    same, other = (
        Refusal(gate="hold", code=Code.HELD, sentence="y"),
        Refusal(gate="hold", code=Code.PAUSED, sentence="z"),
    )
    assert [refusal.since for refusal in with_since((same, other), situation.node, situation.seen.now)] == [
        datetime(2026, 3, 4, 10, tzinfo=UTC),
        NOW,
    ]


@pytest.mark.parametrize(
    "text", ["", "{}", "[3]", '[{"gate":"hold"}]', '[{"gate":"hold","code":"nonsense","sentence":""}]', "[" * 100_000]
)
def test_unreadable_refusals_on_the_node_are_ignored(text: str) -> None:
    assert stored_refusals(a_node(annotations={keys.REFUSALS: text})) == ()


def test_uptimes_are_compared_only_within_one_boot() -> None:
    situation = a_situation(a_node())
    assert situation.elapsed(ago(7)) == 7
    assert situation.elapsed(ago(7, boot="boot-0")) is None
    assert situation.elapsed(None) is None


def test_a_nodes_claim_records_whether_the_node_was_cordoned_before() -> None:
    draining = a_situation(a_marked_node(RECORD))
    assert draining.new_entry("c1") == replace(an_entry(), created="2026-03-04T12:00:00Z", limit=0)
    assert draining.new_entry("c1").cordoned is False
    claiming = a_situation(a_marked_node(a_progress(Phase.CLAIMING), unschedulable=True))
    assert claiming.new_entry("c1").cordoned is True


def test_no_claim_of_this_node_is_read_from_an_unreadable_lock() -> None:
    node = a_marked_node(RECORD)
    assert a_situation(node, lock=held(an_entry())).own_entry is not None
    assert a_situation(node, lock=Unknown("503")).own_entry is None
    assert a_situation(node, lock="garbage").own_entry is None
    assert a_situation(node, lock=held(an_entry(claim="another"))).own_entry is None


@pytest.mark.parametrize(
    ("count", "is_cut", "shown", "ends_open"),
    [
        pytest.param(20, False, 20, False, id="the list is complete"),
        pytest.param(21, False, 20, True, id="more nodes than the list may have"),
        pytest.param(2, True, 2, True, id="the simulation already shortened the list"),
    ],
)
def test_the_forecast_annotation_marks_a_truncated_list_of_nodes(
    count: int, *, is_cut: bool, shown: int, ends_open: bool
) -> None:
    nodes = tuple(f"n{number:02}" for number in range(count))
    pod = PodForecast(
        namespace="shop", name="p", uid="u", outcome=Outcome.MOVES, sentence="", landing=nodes, is_cut=is_cut
    )
    told = forecast_annotation(an_observation(forecast=Forecast(node="n1", made_at="t", pods=(pod,))))[keys.FORECAST]
    assert json.loads(told or "")["pods"]["shop/p"] == [*nodes[:shown], *(["…"] if ends_open else [])]


def test_the_forecast_annotation_says_how_often_a_pod_would_go_to_each_node() -> None:
    sampled = PodForecast(
        namespace="shop",
        name="p",
        uid="u",
        outcome=Outcome.MOVES,
        sentence="",
        landing=("n7", "n2"),
        shares=(0.617, 0.35),
    )
    whole = PodForecast(namespace="shop", name="q", uid="v", outcome=Outcome.MOVES, sentence="", landing=("n3",))
    made = Forecast(node="n1", made_at="t", pods=(sampled, whole))
    told = json.loads(forecast_annotation(an_observation(forecast=made))[keys.FORECAST] or "")
    assert (told["pods"]["shop/p"], told["shares"]) == (["n7", "n2"], {"shop/p": [0.617, 0.35]})


@pytest.mark.parametrize(
    ("longest", "read"),
    [(7200, 7200.0), (0.5, 0.5), (-1, 0.0), ("2h", 0.0), (None, 0.0), (True, 0.0), (1e300, 0.0), ([], 0.0)],
)
def test_an_invalid_time_limit_of_a_stored_refusal_is_read_as_zero(longest: object, read: float) -> None:
    row = {"gate": "blocking-pods", "code": "blocking-pod", "sentence": "x", "longest": longest}
    (refusal,) = stored_refusals(a_node(annotations={keys.REFUSALS: json.dumps([row])}))
    assert refusal.longest_seconds == read


def test_the_time_limit_of_a_refusal_is_stored_on_the_node() -> None:
    policy = a_policy(
        taint_key=None, blocking_pods=(BlockingPods(name="b", selector=Selector.parse("app=db"), longest_seconds=7200),)
    )
    decision = decided(a_progress(Phase.WAITING), policy, pods=(a_pod(labels={"app": "db"}),))
    (row,) = json.loads(the_patch(decision).annotations[keys.REFUSALS] or "[]")
    assert (row["gate"], row["longest"]) == ("blocking-pods", 7200)


@pytest.mark.parametrize(
    ("code", "written", "read"),
    [
        ("health-query", True, True),
        ("health-query", "yes", False),
        ("health-query", 1, False),
        ("health-query", None, False),
        ("alert", None, True),
    ],
)
def test_a_stored_refusal_says_whether_it_concerns_the_whole_cluster(code: str, written: object, read: bool) -> None:
    row = {"gate": "a-gate", "code": code, "sentence": "x", "ofCluster": written}
    (refusal,) = stored_refusals(a_node(annotations={keys.REFUSALS: json.dumps([row])}))
    assert refusal.is_of_cluster is read


@pytest.mark.parametrize("is_of_cluster", [True, False])
def test_the_scope_of_a_refusal_is_stored_on_the_node(is_of_cluster: bool) -> None:
    refusal = Refusal(gate="blocking-pods", code=Code.BLOCKING_POD, sentence="x", is_of_cluster=is_of_cluster)
    patch = the_patch(staying(refusals=(refusal,)))
    (stored,) = stored_refusals(a_node(annotations={keys.REFUSALS: str(patch.annotations[keys.REFUSALS])}))
    assert (stored.code, stored.is_of_cluster) == (Code.BLOCKING_POD, is_of_cluster)


HELD_FOR_AN_HOUR = [{"gate": "hold", "code": "held", "sentence": "x", "since": "2026-03-04T11:00:00Z"}]


def ending(refusals: tuple[Refusal, ...] = (), **annotations: str) -> Any:
    """What the patch of a waiting node writes about the refusals that end with it."""
    stored = {keys.REFUSALS: json.dumps(HELD_FOR_AN_HOUR), **annotations}
    node = a_marked_node(a_progress(Phase.WAITING), annotations=stored)
    decision = stay(a_situation(node), Status(Code.WAITING_FOR_TURN, "x", refusals=refusals), Stay(look=1.0))
    text = the_patch(decision).annotations.get(keys.REFUSED)
    return json.loads(text) if text else None


def test_a_refusal_that_ends_leaves_how_long_it_lasted() -> None:
    assert ending() == {"held": 3600}
    assert ending(**{keys.REFUSED: '{"alert":60,"held":5}'}) == {"held": 3605, "alert": 60}
    assert ending(**{keys.REFUSED: "nonsense"}) == {"held": 3600}


def test_a_refusal_that_goes_on_is_not_counted_yet() -> None:
    still = Refusal(gate="hold", code=Code.HELD, sentence="y")
    assert ending((still, Refusal(gate="alerts", code=Code.ALERT, sentence="z"))) is None


def test_a_moved_node_counts_the_refusals_that_end() -> None:
    node = a_marked_node(a_progress(Phase.WAITING), annotations={keys.REFUSALS: json.dumps(HELD_FOR_AN_HOUR)})
    moved = move(
        a_situation(node), Status(Code.TAKING_CLAIM, "x"), Transition(Phase.CLAIMING, a_progress(Phase.CLAIMING))
    )
    assert the_patch(moved).annotations[keys.REFUSED] == '{"held":3600}'


def test_what_a_refusal_is_about_is_stored_and_bounded() -> None:
    names = tuple(f"alert A{number}" for number in range(20))
    text = refusals_json((Refusal(gate="alerts", code=Code.ALERT, sentence="x", about=names),))
    (stored,) = stored_refusals(a_node(annotations={keys.REFUSALS: str(text)}))
    assert stored.about == names[:8]
    older = '[{"gate":"alerts","code":"alert","sentence":"x","about":"nonsense"}]'
    assert stored_refusals(a_node(annotations={keys.REFUSALS: older}))[0].about == ()
