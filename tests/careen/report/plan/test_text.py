"""Tests the report of a plan, character by character, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from careen.core.facts.policy import Order
from careen.report.plan.as_json import plan_json
from careen.report.plan.risks import risks
from careen.report.plan.text import plan_text
from careen.report.plan.values import is_clean
from careen.report.tables import as_json
from scheduler_core.simulation.timeline import Closing, Left, Move, Obstacle, Wait
from tests.careen.report.planned import T0, a_bad_plan, a_plan, a_visit, at, some_ranges


def test_the_report_of_a_plan_without_problems_is_short() -> None:
    assert (
        plan_text(a_plan())
        == """\
2 of 2 nodes reboot; the roll-out ends Wed 2026-03-04 22:09:05 UTC, after 9m5s.
Plan for 2 nodes from Wed 2026-03-04 22:00 UTC, 1 at a time, in the order oldest.

NODE   START (UTC)               END        MOVES   NOTE
n1     Wed 2026-03-04 22:00      22:04:30   0       -
n2     Wed 2026-03-04 22:04:35   22:09:05   0       -

No pod moves."""
    )


def test_the_report_of_a_plan_shows_three_problems_with_their_remedies_and_counts_the_others() -> None:
    assert plan_text(a_bad_plan()).splitlines() == [
        "2 of 4 nodes reboot by Thu 2026-03-05 22:04:30 UTC; 2 wait: held by a person.",
        (
            "Plan for 4 nodes from Wed 2026-03-04 22:00 UTC, 2 at a time, in the order fewest-moves (the agents "
            "use another order: --order=oldest)."
        ),
        "",
        "At risk:",
        ("  - n3, n4 cannot reboot: held: auditors. Lift the hold with `careen unhold` when it is no longer needed."),
        (
            "  - the agents would undo 1 drain (n2): the window is 22:00–22:05. Start earlier, lengthen the "
            "window by the time of one drain, or set --late-policy=reboot."
        ),
        (
            "  - the window ends at Wed 2026-03-04 22:05 UTC with 1 node still to reboot. Lengthen the window, "
            "or raise --concurrency as far as the budgets allow."
        ),
        "  - and 4 more risks (-o json)",
        "",
        "NODE   START (UTC)               END        MOVES   NOTE",
        ("n1     Wed 2026-03-04 22:00      22:04:30   2       1 pod without room, 1 pod waits until the node is back"),
        "n2     Wed 2026-03-04 22:04:35   22:05:35   0       undone: the window is 22:00–22:05",
        "n2     Thu 2026-03-05 22:00      22:04:30   0       1 pod without room",
        "",
        "The window ends at Wed 2026-03-04 22:05 UTC with 3 nodes still to reboot.",
        "The window ends at Thu 2026-03-05 22:05 UTC with 2 nodes still to reboot.",
        "The plan has 3 moves of 2 pods, including 1 double move.",
        (
            "In 1 move, the pod could equally go to another node with the same score: another seed gives a "
            "slightly different plan."
        ),
        (
            "In 2 cases, a pod finds no room; these pods wait 8m30s in total; shop/e waits longest, until after "
            "the end of the plan."
        ),
        "1 pod can run on one node only and waits until that node is back.",
        "The rule budgets makes n2 wait (the budget zone=a allows 1), so a claim is unused for 4m35s.",
        "",
        "ORDER          REBOOTS   TAKES   MOVES   DOUBLE   PENDING   NOTE",
        "fewest-moves   2         1d      3       1        8m30s     opt-in",
        "oldest         2         9m5s    0       0        0s        the agents' order",
        "Note: durations are assumed.",
    ]
    assert len(risks(a_bad_plan())) == 7


def test_a_plan_of_many_nodes_fits_a_screen_and_a_closing_that_is_not_the_cause_is_no_risk() -> None:
    """The lost nodes wait for their budgets; a longer window would change nothing."""
    visits = tuple(a_visit(f"n{each}", 275.0 * each) for each in range(128))
    left = tuple(
        Left(node=f"w{each}", obstacle=never(f"shop/app-{each % 15}", f"shop/app-{each % 7}")) for each in range(72)
    )
    nodes = tuple(each.node for each in (*visits, *left))
    plan = a_plan(visits=visits, left=left, nodes=nodes, closings=(Closing(at=at(40_000), left=72),))
    notes = tuple(
        f"the plan assumes this and, because a dump does not tell it, also that {each} " * 9 for each in "abcd"
    )
    for width in (80, 120):
        drawn = plan_text(replace(plan, notes=notes), width=width).splitlines()
        assert len(drawn) <= 40
        assert max(map(len, drawn)) <= width
        assert sum(line.startswith("n") for line in drawn) >= 3
        assert "4 notes on what the plan assumes: -o json or --report=FILE.html" in drawn
    lines = plan_text(plan).splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("128 of 200 nodes reboot by ")
    assert "; 72 need a change of 15 budgets; shop/app-0 holds " in lines[0]
    assert not [each for each in risks(plan) if "the window ends" in each.what or "pending-allowed" in each.remedy]
    told = json.loads(as_json(plan_json(plan)))
    assert {name for cause in told["causes"] for name in cause["nodes"]} == {each.node for each in left}


def never(*budgets: str) -> Obstacle:
    """Return the obstacle of a node with pods of these budgets, which never allow an eviction."""
    names = sorted(set(budgets))
    return Obstacle(
        rule="forecast",
        subject=f"the disruption budget{'s' if len(names) > 1 else ''} {', '.join(names)}",
        sentence="1 of 2 pods can never be evicted: a pod",
    )


def test_the_report_of_a_plan_uses_the_time_zone_of_the_window() -> None:
    text = plan_text(a_plan(zone=ZoneInfo("Asia/Kolkata")))
    assert "from Thu 2026-03-05 03:30 IST," in text
    assert "START (Asia/Kolkata)" in text


def test_a_plan_without_nodes_has_a_report() -> None:
    nobody = a_plan(
        visits=(), left=(Left(node="n1", obstacle=Obstacle(rule="budgets", subject="x", sentence="n9 is cordoned")),)
    )
    assert "0 of 2 nodes reboot.\n" in plan_text(nobody)
    assert "NODE " not in plan_text(nobody)


@pytest.mark.parametrize(
    ("changes", "clean"),
    [
        pytest.param({}, True, id="a plan without problems is clean"),
        pytest.param(
            {"waits": (Wait(pod="p", node="n1", since=T0, until=at(1), returns=True, why=""),)},
            True,
            id="a plan is clean if a pod waits only until its node is back",
        ),
        pytest.param({"lost": ("p",)}, True, id="a plan with a lost pod is clean, but reports the pod"),
        pytest.param(
            {"waits": (Wait(pod="p", node="n1", since=T0, until=at(1), returns=False, why=""),)},
            False,
            id="a plan in which a pod finds no room is not clean",
        ),
        pytest.param(
            {"closings": (Closing(at=at(1), left=1),)}, False, id="a plan that needs a second window is not clean"
        ),
        pytest.param(
            {"visits": (a_visit("n1", 0, undone="shut"),)},
            False,
            id="a plan in which an agent undoes a drain is not clean",
        ),
        pytest.param({"unknown": ("p",)}, False, id="a plan with an unpredictable pod is not clean"),
        pytest.param(
            {"left": (Left(node="n1", obstacle=Obstacle(rule="hold", subject="", sentence="")),)},
            False,
            id="a plan in which a node does not reboot is not clean",
        ),
    ],
)
def test_a_plan_is_clean_if_it_needs_one_window_and_every_pod_has_room(changes: dict[str, Any], clean: bool) -> None:
    assert is_clean(a_plan(**changes)) is clean
    assert bool(risks(a_plan(**changes))) is (not clean or "lost" in changes)


def test_the_json_output_of_a_plan_is_complete() -> None:
    plan = json.loads(as_json(plan_json(a_bad_plan())))
    assert plan["agentsOrder"] == "oldest"
    assert (plan["order"], plan["concurrency"], plan["begins"], plan["nodes"]) == (
        "fewest-moves",
        2,
        "2026-03-04T22:00:00Z",
        ["n1", "n2", "n3", "n4"],
    )
    assert plan["visits"][0]["steps"][1] == {
        "step": "rebooting",
        "start": "2026-03-04T22:01:00Z",
        "end": "2026-03-04T22:04:00Z",
    }
    assert plan["visits"][1]["undone"] == "the window is 22:00–22:05"
    assert plan["moves"][0] == {
        "pod": "shop/a",
        "from": "n1",
        "to": "n2",
        "at": "2026-03-04T22:00:00Z",
        "choices": 2,
        "preempted": False,
        "open": False,
    }
    assert plan["waits"][2] == {
        "pod": "shop/e",
        "node": "n2",
        "since": "2026-03-05T22:00:00Z",
        "until": None,
        "returns": False,
        "why": "0/4 nodes are available: 4 Insufficient memory.",
    }
    assert plan["closings"] == [{"at": "2026-03-04T22:05:00Z", "left": 3}, {"at": "2026-03-05T22:05:00Z", "left": 2}]
    assert plan["left"][0] == {"node": "n3", "rule": "hold", "sentence": "held: auditors"}
    assert plan["figures"] == {
        "reboots": 2,
        "seconds": 86_670,
        "moves": 3,
        "doubleMoves": 1,
        "pending": 2,
        "pendingSeconds": 510,
        "left": 2,
    }
    assert set(plan["comparison"]) == {Order.OLDEST.value, Order.FEWEST_MOVES.value}
    assert (plan["lost"], plan["unknown"], plan["mostAtOnce"], len(plan["risks"])) == (
        ["shop/bare"],
        ["shop/odd"],
        1,
        7,
    )


def test_the_report_of_a_plan_says_how_many_pods_may_go_to_another_node() -> None:
    moves = (
        Move(pod="shop/a", source="n1", target="n2", at=at(0), is_open=True),
        Move(pod="shop/b", source="n1", target="n2", at=at(0)),
    )
    plan = a_plan(moves=moves)
    assert (
        "In 1 move, the pod may go to another node: kube-scheduler examines only a part of the fitting nodes, unless "
        "its percentageOfNodesToScore is 100."
    ) in plan_text(plan).splitlines()
    assert [move.get("open", False) for move in plan_json(plan)["moves"]] == [True, False]


def test_a_range_in_json_is_a_pair_of_minimum_and_maximum() -> None:
    assert plan_json(a_plan(ranges=some_ranges(not_clean=1), is_open=True))["ranges"] == {
        "seeds": 5,
        "leftToChance": True,
        "moves": [38, 44],
        "doubleMoves": [2, 2],
        "ends": ["2026-03-04T22:09:05Z", "2026-03-04T22:16:05Z"],
        "seconds": [545, 965],
        "pendingSeconds": [0, 0],
        "notClean": 1,
    }


def test_a_plan_is_not_clean_if_another_random_seed_gives_a_problem() -> None:
    plan = a_plan(ranges=some_ranges(not_clean=2), is_open=True)
    assert not is_clean(plan)
    assert [risk.what for risk in risks(plan)] == [
        (
            "with 2 of 5 seeds, the plan has a problem, such as a node that does not reboot in the first window or a "
            "pod that finds no room"
        )
    ]
