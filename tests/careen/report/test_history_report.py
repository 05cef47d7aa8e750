"""Tests the table of past reboots, and the expected end of reboots in progress."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.steps.shared.history import reboots_of
from careen.report.history_report import expected_text, history_json, history_text
from careen.rollout import durations
from careen.rollout.model import Expected
from tests.careen.core.builders import NOW, a_marked_node, a_node, a_progress

EARLIER = [{"at": "2026-03-03T12:00:00Z", "why": "a new kernel", "seconds": 300, "moves": 7}]


def rebooted(name: str, *rows: dict[str, Any]) -> NodeView:
    return a_node(name, annotations={keys.HISTORY: json.dumps(list(rows))})


def expected_ends(nodes: Sequence[NodeView]) -> dict[str, Expected]:
    return durations.expected_ends(
        nodes, durations.last_lengths(nodes, {node.name: reboots_of(node) for node in nodes})
    )


def under_way(name: str, phase: Phase, started: str, seconds: int | None = None) -> NodeView:
    annotations = {keys.LAST_REBOOT: json.dumps({"at": "2026-03-01T12:00:00Z", "seconds": seconds})} if seconds else {}
    return a_marked_node(a_progress(phase, drain_started_at=started), name=name, annotations=annotations)


def test_careen_history_lists_the_reboots_of_all_nodes_newest_first() -> None:
    nodes = [rebooted("n1", *EARLIER), rebooted("n2", {"at": "2026-03-04T11:00:00Z"}), a_node("n3")]
    assert history_text(nodes, NOW) == (
        "NODE   BACK AT                   AGE      TOOK   MOVES   WHY\n"
        "n2     2026-03-04 11:00:00 UTC   1h ago   -      -       -\n"
        "n1     2026-03-03 12:00:00 UTC   1d ago   5m     7       a new kernel\n\n"
        "2 reboots of 2 nodes; each Node records only its last five reboots."
    )
    assert [each["node"] for each in history_json(nodes)["reboots"]] == ["n2", "n1"]


def test_careen_history_without_reboots_prints_a_message() -> None:
    assert history_text([a_node()], NOW) == "careen has recorded no reboot of n1."
    assert history_text([], NOW) == "careen has recorded no reboot of any node."


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING])
def test_the_expected_end_of_a_reboot_is_based_on_the_nodes_last_reboot(phase: Phase) -> None:
    (found,) = expected_text(expected_ends([under_way("n1", phase, "2026-03-04T11:58:00Z", 300)]), NOW)
    assert found == (
        "The reboot of n1 began 2m ago; it should be over at 2026-03-04 12:03:00 UTC "
        "(estimated duration: 5m, based on its last reboot)."
    )


def test_a_first_reboot_is_expected_to_take_the_median_time_of_other_nodes() -> None:
    others = [rebooted(f"n{number}", {**EARLIER[0], "seconds": 100 * number}) for number in (2, 3, 9)]
    found = expected_ends([under_way("n1", Phase.REBOOTING, "2026-03-04T11:58:00Z"), *others])
    assert (found["n1"].seconds, found["n1"].basis) == (300, "the last reboots of 3 nodes")


def test_the_report_marks_a_reboot_that_takes_longer_than_expected() -> None:
    (found,) = expected_text(expected_ends([under_way("n1", Phase.REBOOTING, "2026-03-04T11:00:00Z", 300)]), NOW)
    assert "n1 began 1h ago; it should have been over at 2026-03-04 11:05:00 UTC" in found


@pytest.mark.parametrize(
    "node",
    [
        under_way("n1", Phase.MAINTENANCE, "2026-03-04T11:58:00Z", 300),
        under_way("n1", Phase.REBOOTING, "soon", 300),
        under_way("n1", Phase.REBOOTING, "2026-03-04T11:58:00Z"),
        a_marked_node(a_progress(Phase.WAITING)),
        a_node(annotations={keys.PROGRESS: "what?"}),
    ],
    ids=[
        "a node kept down for maintenance",
        "an unreadable start time",
        "no earlier reboot was measured",
        "a node that waits for its reboot",
        "an unreadable record",
    ],
)
def test_a_reboot_with_an_unknown_start_or_duration_has_no_expected_end(node: NodeView) -> None:
    assert expected_ends([node]) == {}


def test_the_expected_duration_of_a_reboot_begins_when_the_node_is_cordoned() -> None:
    found = expected_ends([under_way("n1", Phase.DRAINING, "2026-03-04T11:58:00Z", 300)])["n1"]
    assert found.end == NOW + timedelta(minutes=3)
