"""Messages to people. The tests show which fields a message has, and when an agent reports the end of a roll-out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.core.actions import Notify, Occasion
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.people import telling
from careen.core.steps.shared import failing
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.core.builders import (
    NO,
    UNKNOWN_NEED,
    YES,
    a_marked_node,
    a_progress,
    a_reading,
    a_situation,
    an_entry,
    an_owner,
    decided,
    held,
)

NEED = "linux-image asks for a reboot"


def said(decision: Decision) -> list[Notify]:
    return [action for action in decision.actions if isinstance(action, Notify)]


def settling(**changes: Any) -> Decision:
    record = a_progress(Phase.SETTLING, owners=(an_owner(),), reboots_for_need=1)
    return decided(record, **{"need": NO, "owners": (an_owner(),), "waiters": (), **changes})


N2 = a_marked_node(a_progress(Phase.WAITING), name="n2", label="required")
N1 = a_marked_node(a_progress(Phase.SETTLING), name="n1")


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        pytest.param({}, True, id="no other node waits or holds a claim"),
        pytest.param({"waiters": (N1,)}, True, id="the list of waiting nodes still contains this node"),
        pytest.param({"waiters": (N2,)}, False, id="another node waits"),
        pytest.param({"waiters": Unknown("503")}, False, id="the waiting nodes are unknown"),
        pytest.param({"lock": held(an_entry(), an_entry("n9"))}, False, id="another node holds a claim"),
        pytest.param(
            {"lock": held(an_entry(), an_entry("n9", failed="never-ready"))}, False, id="another node has failed"
        ),
        pytest.param({"need": UNKNOWN_NEED}, False, id="it is unknown whether this node needs another reboot"),
        pytest.param({"need": YES}, False, id="this node needs another reboot"),
    ],
)
def test_the_node_that_releases_the_last_claim_reports_the_end_of_the_roll_out(
    changes: dict[str, Any], is_told: bool
) -> None:
    assert [message.occasion for message in said(settling(**changes))] == ([Occasion.DONE] if is_told else [])


def test_a_maintenance_without_a_reboot_does_not_report_the_end_of_a_roll_out() -> None:
    record = a_progress(Phase.SETTLING, owners=(an_owner(),), verify_started=None)
    assert said(decided(record, need=NO, owners=(an_owner(),), waiters=())) == []


def test_a_failure_halts_the_roll_out_only_if_the_claim_is_kept() -> None:
    node = a_marked_node(a_progress(Phase.DRAINING), unschedulable=True)
    situation = a_situation(node, lock=a_reading(held(an_entry())))
    (halted,) = said(failing.halted(situation, Code.NEVER_READY, "not ready", progress=situation.progress))
    (failed,) = said(failing.undone(situation, Code.DRAIN_TIMEOUT, "not drained"))
    assert (halted.occasion, halted.reason, halted.seconds) == (Occasion.HALTED, "n1: not ready", 30.0)
    assert (failed.occasion, failed.sentence) == (Occasion.FAILED, "Node n1: not drained")


def pod(name: str, outcome: Outcome, *landing: str) -> PodForecast:
    return PodForecast(namespace="shop", name=name, uid=name, outcome=outcome, sentence="", landing=landing)


def test_a_forecast_is_shown_on_one_line() -> None:
    made = Forecast(
        node="n1",
        made_at="2026-03-04T12:00:00Z",
        pods=(
            pod("a", Outcome.MOVES, "n2"),
            pod("b", Outcome.MOVES, "n2", "n3"),
            pod("c", Outcome.MOVES, "n2", "n3", "n4"),
            pod("d", Outcome.MOVES, "n2"),
            pod("e", Outcome.PENDING),
            pod("f", Outcome.UNKNOWN),
        ),
    )
    line = (
        "4 pods move (shop/a to n2; shop/b to n2 or n3; shop/c to n2 or n3 or other nodes; pods not listed: 1), "
        "1 pod stays pending, 1 pod is blocked or not predictable"
    )
    assert telling.forecast_line(a_situation(forecast=made)) == line


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        (
            {"counts": {"moves": 1, "pending": 2}, "pods": {"shop/a": ["n2", "…"]}},
            "1 pod moves (shop/a to n2 or other nodes), 2 pods stay pending",
        ),
        ({"counts": {}}, "0 pods move, 0 pods stay pending"),
        ({"counts": {"moves": 2}, "pods": {"a": "n2", "b": [5], "c": []}}, "2 pods move, 0 pods stay pending"),
        ({"counts": {"moves": "many", "pending": -1}, "pods": []}, "0 pods move, 0 pods stay pending"),
        ({"counts": 5}, ""),
        ([], ""),
        ("x", ""),
    ],
)
def test_any_content_of_the_forecast_annotation_can_be_shown(stored: object, line: str) -> None:
    node = a_marked_node(a_progress(Phase.DRAINING), annotations={keys.FORECAST: json.dumps(stored)})
    assert telling.forecast_line(a_situation(node, forecast=NOT_ASKED)) == line


def test_a_message_about_a_reboot_contains_its_reason_and_duration() -> None:
    node = a_marked_node(a_progress(Phase.DRAINING), annotations={keys.NEED: NEED})
    told = telling.about_reboot(a_situation(node), Occasion.REBOOT, "x", since="2026-03-04T11:59:30Z")
    assert (told.claim, told.reason, told.seconds) == ("c1", NEED, 30.0)
    for since in ("", "soon", "2999-01-01T00:00:00Z"):
        assert telling.about_reboot(a_situation(node), Occasion.REBOOT, "x", since=since).seconds is None
