"""The figures of a roll-out, such as its duration. They are computed from the report of the last reboot on each Node.
Invalid annotations are ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.people.rollout import Figures, figures
from tests.careen.core.builders import a_node


def rebooted(name: str, at: str, **report: Any) -> NodeView:
    return a_node(name, annotations={keys.LAST_REBOOT: json.dumps({"at": at, **report})})


N1 = rebooted("n1", "2026-03-04T12:10:00Z", seconds=600, needSince="2026-03-04T11:00:00Z", moves=3)
N2 = rebooted("n2", "2026-03-04T13:00:00Z", seconds=300, needSince="2026-03-04T12:00:00Z", moves=4, failures=2)
N3 = rebooted("n3", "2026-03-04T14:00:00Z", seconds=300, needSince="2026-03-04T12:30:00Z", moves=1)
BEFORE = rebooted("n4", "2026-03-04T10:59:59Z", seconds=300, needSince="2026-03-01T00:00:00Z", moves=100)


def test_reboots_that_were_needed_at_the_same_time_belong_to_one_roll_out() -> None:
    assert figures([N3, BEFORE, N1, a_node("n5"), N2]) == Figures(nodes=3, seconds=7200, pods=8, failures=2)


def test_the_reboot_of_a_single_node_is_a_roll_out() -> None:
    assert figures([N1]) == Figures(nodes=1, seconds=600, pods=3, failures=0)


def test_a_roll_out_includes_reboots_that_an_older_release_of_careen_reported() -> None:
    old = rebooted("n2", "2026-03-04T12:05:00Z", seconds=300, moves=2)
    assert figures([N1, old]) == Figures(nodes=2, seconds=600, pods=5, failures=0)


def test_two_reboots_belong_to_one_roll_out_if_both_overlap_a_third_reboot() -> None:
    """A reboot counts from the time at which the node first needed the reboot. The reboot of n4 ended one second before
    n1 needed a reboot, so these two reboots do not overlap. n9 needed its reboot at 09:00 and finished at 15:00, so the
    reboot of n9 overlaps both."""
    held = rebooted("n9", "2026-03-04T15:00:00Z", seconds=60, needSince="2026-03-04T09:00:00Z")
    assert figures([N1, BEFORE, held]) == Figures(nodes=3, seconds=14701, pods=103, failures=0)


@pytest.mark.parametrize(
    "report",
    [
        "",
        "null",
        "[]",
        "{",
        '{"at": 5}',
        '{"at": "yesterday"}',
        '{"at": null, "moves": 1e99}',
        "[" * 5000,
    ],
)
def test_an_invalid_reboot_report_on_a_node_is_ignored(report: str) -> None:
    nonsense = a_node("n0", annotations={keys.LAST_REBOOT: report})
    assert figures([nonsense]) is None
    assert figures([nonsense, N1]) == figures([N1])


def test_the_figures_of_a_roll_out_leave_out_impossible_numbers() -> None:
    odd = rebooted("n1", "2026-03-04T12:10:00Z", seconds=-5, needSince="2999-01-01T00:00:00Z", moves="4", failures=True)
    assert figures([odd]) == Figures(nodes=1, seconds=0, pods=0, failures=0)
