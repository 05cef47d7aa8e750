"""A node has rebooted, and its workloads settle. Meanwhile, the next node in line prepares its claim, for example with
a forecast. The tests show what the next node prepares, and how long the result is valid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Memory, Prepared
from careen.core.facts.observation import NOT_ASKED, DryRunAnswer, Evictable, NodeView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import ForecastPolicy
from careen.core.lock.clearance import hand_over_key
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import (
    UPTIME,
    a_fleet,
    a_marked_node,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_patch,
    the_record,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
RECORD = a_progress(Phase.WAITING, taint_key=OURS.key, tainted_at="2026-03-04T11:00:00Z")
READY: dict[str, Any] = {"taints": (OURS,), "label": "ready", "annotations": {keys.MOVES: "2"}}
MINE = a_marked_node(RECORD, **READY)
OTHER = a_node("n9")
SETTLING = held(
    an_entry("n9", "c9", due="2026-03-04T12:00:03Z"), line=Line(names=("n1", "n2"), at="2026-03-04T11:59:00Z")
)
FREE = LockContent(line=Line(names=("n1", "n2"), at="2026-03-04T12:00:00Z"))
PODS = (a_pod("web-1"), a_pod("db-1", namespace="data"))
ALLOWED = {"shop/web": 1, "data/db": 2, "elsewhere/x": 0}
MADE_OF = {Evidence.FORECAST, Evidence.EVICTABILITY}
RESTS_ON = {Evidence.FLEET, Evidence.PODS, Evidence.DISRUPTIONS}
NO_ROOM = Forecast(
    node="n1",
    made_at="",
    pods=(PodForecast(namespace="shop", name="a", uid="a", outcome=Outcome.PENDING, sentence="no room"),),
)


def waiting(**changes: Any) -> Decision:
    """Return the decision of the agent of n1, which is the next node in line. n9 holds the claim on the reboot lock and
    expects to release it in three seconds."""
    given: dict[str, Any] = {"pods": PODS, "fleet": a_fleet(MINE, OTHER), "disruptions": ALLOWED, "lock": SETTLING}
    return decided(RECORD, node=READY, **given | changes)


def prepared(**changes: Any) -> Prepared:
    found = waiting(**changes).memory.prepared
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("lock", "is_time"),
    [
        pytest.param(SETTLING, True, id="this node is next, and the release is due in three seconds"),
        pytest.param(
            held(an_entry("n9", due="2026-03-04T11:00:00Z"), line=Line(names=("n1",))),
            True,
            id="the release is an hour overdue",
        ),
        pytest.param(
            held(an_entry("n9", due="2026-03-04T12:00:06Z"), line=Line(names=("n1",))),
            False,
            id="the release is due in six seconds",
        ),
        pytest.param(
            held(an_entry("n9"), line=Line(names=("n1",))), False, id="the claim does not say when its release is due"
        ),
        pytest.param(
            replace(SETTLING, line=replace(SETTLING.line, names=("n2", "n1"))), False, id="another node is next"
        ),
        pytest.param(
            held(an_entry("n9", due="2026-03-04T12:00:03Z", failed="never-ready"), line=Line(names=("n1",))),
            False,
            id="the holder has failed",
        ),
    ],
)
def test_only_the_next_node_in_line_prepares_a_forecast_before_an_expected_release(
    lock: LockContent, is_time: bool
) -> None:
    wants = waiting(lock=lock, forecast=NOT_ASKED, evictability=NOT_ASKED).wants
    assert (wants == MADE_OF) is is_time


def beside(*entries: Entry, **more: Any) -> LockContent:
    return held(*entries, **{"line": Line(names=("n1", "n2")), **more})


# The tests run at 12:00:00, so these claims are one and three minutes old. A claim is young for two minutes
# (`preparing.YOUNG_SECONDS`).
YOUNG, OLD = "2026-03-04T11:59:00Z", "2026-03-04T11:57:00Z"


@pytest.mark.parametrize(
    ("changes", "expects"),
    [
        pytest.param(
            {"lock": beside(an_entry("n9", created=YOUNG))}, True, id="this node is next, and the claim is new"
        ),
        pytest.param({"lock": beside(an_entry("n9", created=OLD))}, False, id="the claim is three minutes old"),
        pytest.param({"lock": beside(an_entry("n9", created="soon"))}, False, id="the claim's age is unknown"),
        pytest.param(
            {"lock": beside(an_entry("n9", created="2026-03-04T13:00:00Z"))},
            False,
            id="the creation time of the claim is in the future",
        ),
        pytest.param(
            {"lock": beside(an_entry("n9", created=OLD, due="2026-03-04T12:00:15Z"))},
            True,
            id="the claim is old, and its release is due soon",
        ),
        pytest.param(
            {"lock": beside(an_entry("n9", created=OLD, due="2026-03-04T11:59:00Z"))},
            False,
            id="the release is a minute overdue",
        ),
        pytest.param(
            {"lock": beside(an_entry("n9", created=YOUNG), line=Line(names=("n2", "n1")))},
            False,
            id="another node is next",
        ),
        pytest.param(
            {"lock": beside(an_entry("n9", created=YOUNG)), "policy": a_policy(forecast=ForecastPolicy.OFF)},
            False,
            id="forecasts are switched off",
        ),
        pytest.param({"lock": beside(an_entry("n9", created=YOUNG), is_paused=True)}, False, id="the lock is paused"),
    ],
)
def test_only_a_node_that_may_claim_within_seconds_starts_a_forecast_process(
    changes: dict[str, Any], expects: bool
) -> None:
    """A forecast process uses memory while it waits for its input. Only the agent of the next node in line starts such
    a process, some seconds before the claim."""
    assert waiting(**changes).starts_soon is expects


def test_the_agent_reads_all_inputs_before_it_prepares_a_forecast() -> None:
    nothing = dict.fromkeys(("fleet", "pods", "disruptions", "forecast", "evictability"), NOT_ASKED)
    assert waiting(**nothing).wants == RESTS_ON
    off = a_policy(forecast=ForecastPolicy.OFF)
    assert waiting(policy=off, forecast=NOT_ASKED, evictability=NOT_ASKED).wants == {Evidence.EVICTABILITY}


def test_an_agent_reads_the_lock_again_half_a_second_after_it_has_prepared_a_forecast() -> None:
    """The agent keeps the preparation in its memory. The agent writes nothing to the Node and nothing to the lock."""
    decision = waiting()
    assert (kinds(decision), decision.look_again_seconds) == ([], 0.5)
    assert prepared().rehearsed == {"uid-web-1", "uid-db-1"}
    assert prepared().disruptions == {"shop/web": 1, "data/db": 2}
    assert (prepared().found, prepared().holders) == (("n9",), ())


def test_a_prepared_forecast_is_repeated_at_growing_intervals() -> None:
    def again(ago: float, times: int) -> bool:
        before = replace(prepared(), at=UPTIME - ago, times=times)
        return waiting(memory=remembering(prepared=before), forecast=NOT_ASKED).wants == {Evidence.FORECAST}

    assert [again(9, 1), again(10, 1), again(19, 2), again(20, 2), again(59, 9), again(60, 9)] == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    assert prepared(memory=remembering(prepared=replace(prepared(), at=UPTIME - 60, times=3))).times == 4


def ready(before: Prepared, **changes: Any) -> Memory:
    return remembering(
        prepared=before, line__key=hand_over_key(changes.get("lock", FREE)), line__since=UPTIME, costly__not_before=0.0
    )


def our_turn(before: Prepared, **changes: Any) -> Decision:
    """Return the decision of n1's agent after n9 has released its claim. `before` is what n1's agent had prepared. By
    default, the agent has made no forecast in this turn."""
    given: dict[str, Any] = {"lock": FREE, "forecast": NOT_ASKED, "memory": ready(before)}
    return waiting(**given | changes)


def claimed(before: Prepared, **changes: Any) -> Decision:
    """Return the decision of n1's agent when the lock contains n1's claim. `before` is what the agent prepared in
    earlier rounds of its loop. `changes` replaces facts that the agent knows in this round. Without `changes`, the
    agent has made no new forecast and no new dry-run evictions in this round."""
    given: dict[str, Any] = {
        "pods": PODS,
        "fleet": a_fleet(MINE, OTHER),
        "disruptions": ALLOWED,
        "lock": held(an_entry("n1", "c1")),
        "forecast": NOT_ASKED,
        "evictability": NOT_ASKED,
        "memory": remembering(prepared=before),
    }
    record = a_progress(Phase.CLAIMING, taint_key=OURS.key, tainted_at="2026-03-04T11:00:00Z")
    return decided(record, node={"taints": (OURS,)}, **given | changes)


def test_a_valid_prepared_forecast_is_used_and_recorded_on_the_node() -> None:
    before = replace(prepared(), at=UPTIME - 4)
    decision = our_turn(before)
    assert decision.phase is Phase.CLAIMING
    assert (
        the_patch(decision).annotations[keys.PREPARED]
        == "the forecast and the dry runs that were made 4s earlier were used"
    )
    assert decision.memory.claiming.forecast is None, "after the claim the agent checks the inputs again"
    assert decision.memory.prepared == before
    cordoned = claimed(before)
    assert cordoned.phase is Phase.DRAINING
    assert decided(the_record(cordoned), memory=cordoned.memory).memory.prepared is None


def test_a_prepared_forecast_is_used_only_after_its_inputs_are_read_again() -> None:
    nothing = dict.fromkeys(("fleet", "pods", "disruptions"), NOT_ASKED)
    assert our_turn(prepared(), **nothing).wants == RESTS_ON
    assert claimed(prepared(), **nothing).wants == RESTS_ON | {Evidence.LOCK, Evidence.PEERS}


NEW = a_node("n3")
TAINTED = a_node("n9", taints=(Taint(key="x", effect="NoSchedule"),))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"fleet": a_fleet(MINE, OTHER, NEW)}, "the Node n3 is new", id="a node was added"),
        pytest.param({"fleet": a_fleet(MINE)}, "the Node n9 is gone", id="a node was deleted"),
        pytest.param({"fleet": a_fleet(MINE, TAINTED)}, "the Node n9 has changed", id="another node has a new taint"),
        pytest.param(
            {"fleet": a_fleet(MINE, a_node("n9", labels={"a": "b"}))},
            "the Node n9 has changed",
            id="another node has a new label",
        ),
        pytest.param(
            {"fleet": a_fleet(MINE, a_node("n9", uid="x"))}, "the Node n9 has changed", id="another node was recreated"
        ),
        pytest.param(
            {"pods": (*PODS, a_pod("new-1"))}, "the pod shop/new-1 is new on this node", id="this node has a new pod"
        ),
        pytest.param(
            {"disruptions": {**ALLOWED, "shop/web": 0}},
            "the disruption budget shop/web has changed",
            id="a disruption budget allows no eviction any more",
        ),
        pytest.param(
            {"disruptions": {**ALLOWED, "data/more": 0}},
            "the disruption budget data/more is new",
            id="a disruption budget was added",
        ),
        pytest.param(
            {"disruptions": {"shop/web": 1}},
            "the disruption budget data/db is gone",
            id="a disruption budget was deleted",
        ),
        pytest.param(
            {"disruptions": Unknown("503")},
            "the disruption budgets could not be read",
            id="the disruption budgets cannot be read",
        ),
    ],
)
def test_the_agent_discards_a_prepared_forecast_and_writes_the_reason_if_an_input_has_changed(
    changes: dict[str, Any], why: str
) -> None:
    before = prepared()
    assert our_turn(before, **changes).wants == {Evidence.FORECAST}
    assert claimed(before, **changes).wants == {Evidence.FORECAST}
    made = our_turn(before, **changes, forecast=Forecast(node="n1", made_at=""))
    assert the_patch(made).annotations[keys.PREPARED] == f"the forecast and the dry runs were thrown away: {why}"


@pytest.mark.parametrize(
    ("ago", "is_good"),
    [
        pytest.param(10, True, id="the forecast is ten seconds old"),
        pytest.param(10.5, False, id="the forecast is more than ten seconds old"),
    ],
)
def test_a_prepared_forecast_is_valid_for_ten_seconds(ago: float, is_good: bool) -> None:
    assert (our_turn(replace(prepared(), at=UPTIME - ago)).phase is Phase.CLAIMING) is is_good


def test_a_new_claim_of_another_node_discards_the_prepared_forecast() -> None:
    two = a_policy(concurrency=2)
    lock = held(an_entry("n5", "c5", limit=2), line=Line(names=("n1",)))
    decision = our_turn(prepared(), policy=two, lock=lock, memory=ready(prepared(), lock=lock))
    assert decision.wants == {Evidence.FORECAST}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"fleet": a_fleet(MINE, a_node("n9", resource_version="8"))}, id="a heartbeat of another node"),
        pytest.param(
            {"fleet": a_fleet(MINE, a_node("n9", labels={keys.REBOOT_LABEL: "ready"}))},
            id="careen's label on another node",
        ),
        pytest.param({"disruptions": {**ALLOWED, "elsewhere/x": 7}}, id="a disruption budget for pods of other nodes"),
        pytest.param({"pods": PODS[:1]}, id="a pod of this node was deleted"),
    ],
)
def test_an_irrelevant_change_does_not_discard_the_prepared_forecast(changes: dict[str, Any]) -> None:
    assert our_turn(prepared(), **changes).phase is Phase.CLAIMING


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param({"forecast": NO_ROOM}, id="a pod would find no room"),
        pytest.param({"forecast": Unknown("too slow")}, id="the forecast failed"),
        pytest.param(
            {"evictability": {"uid-web-1": DryRunAnswer(answer=Evictable.BUDGET, detail="no")}},
            id="a disruption budget refuses an eviction",
        ),
        pytest.param({"disruptions": Unknown("503")}, id="the disruption budgets cannot be read"),
    ],
)
def test_a_prepared_forecast_that_forbids_the_reboot_is_repeated_before_the_claim(
    refused: dict[str, Any],
) -> None:
    before = prepared(**refused)
    assert before.refused
    assert our_turn(before).wants == {Evidence.FORECAST}


def test_the_gates_are_evaluated_again_despite_a_prepared_forecast() -> None:
    down: NodeView = a_node("n9", ready=False)
    decision = our_turn(prepared(fleet=a_fleet(MINE, down)), fleet=a_fleet(MINE, down))
    assert decision.phase is Phase.WAITING
    assert not [each for each in decision.actions if isinstance(each, PatchNode) and keys.PROGRESS in each.annotations]
