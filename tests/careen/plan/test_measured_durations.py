"""Tests that a plan uses the durations that each node reported after its last reboot. For a node without a report, the
plan uses the median of the other nodes' reports. If no node has a report, it uses default durations."""

from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.plan.measured_durations import (
    ASSUMED_BOOT_SECONDS,
    ASSUMED_DRAIN_SECONDS,
    ASSUMED_SETTLE_SECONDS,
    Boots,
    Typical,
    measured_boots,
    measured_drains,
    measured_settling,
)
from tests.careen.core.builders import a_node


def test_a_node_without_a_report_gets_the_median_of_the_reported_durations() -> None:
    nodes = [
        a_node(name, annotations={keys.LAST_REBOOT: f'{{"seconds": {seconds}}}'})
        for name, seconds in (("a", 160), ("b", 260), ("c", 960))
    ]
    assert measured_boots([*nodes, a_node("d")], drain_seconds=60) == Boots(
        of={"a": 100, "b": 200, "c": 900}, others=200, measured=3
    )


def test_the_estimated_boot_time_is_at_least_one_second() -> None:
    assert measured_boots([a_node("a", annotations={keys.LAST_REBOOT: '{"seconds": 50}'})], drain_seconds=60).of == {
        "a": 1
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"seconds": "9"}',
        '{"seconds": true}',
        '{"seconds": -5}',
        '{"seconds": 0}',
        '{"seconds": 90000}',
        "[" * 9999,
    ],
)
def test_a_reboot_report_without_a_valid_duration_is_ignored(text: str) -> None:
    assert measured_boots([a_node("a", annotations={keys.LAST_REBOOT: text})], drain_seconds=60) == Boots(
        of={}, others=ASSUMED_BOOT_SECONDS, measured=0
    )


def reported(*reports: str) -> list[NodeView]:
    return [a_node(f"n{number}", annotations={keys.LAST_REBOOT: report}) for number, report in enumerate(reports)]


def test_the_drain_time_and_the_settling_time_are_the_medians_of_the_reporting_nodes() -> None:
    nodes = [
        *reported(
            '{"drainSeconds": 10, "settleSeconds": 3}',
            '{"drainSeconds": 40, "settleSeconds": 0}',
            '{"drainSeconds": 20}',
            '{"seconds": 300}',
        ),
        a_node("new"),
    ]
    assert measured_drains(nodes) == Typical(seconds=20, measured=3)
    assert measured_settling(nodes) == Typical(seconds=1.5, measured=2)


def test_the_boot_time_is_the_reported_total_minus_drain_and_delay() -> None:
    nodes = reported('{"seconds": 200, "drainSeconds": 15}', '{"seconds": 200}')
    assert measured_boots(nodes, drain_seconds=60, pause_seconds=10).of == {"n0": 175, "n1": 130}


@pytest.mark.parametrize("value", ["-1", "1.5", "true", "null", '"9"', "90000", "[]", "1e999", "9" * 400])
def test_an_impossible_reported_duration_is_ignored(value: str) -> None:
    nodes = reported(f'{{"seconds": 200, "drainSeconds": {value}, "settleSeconds": {value}}}')
    assert measured_drains(nodes) == Typical(seconds=ASSUMED_DRAIN_SECONDS, measured=0)
    assert measured_settling(nodes) == Typical(seconds=ASSUMED_SETTLE_SECONDS, measured=0)
