"""What the last reboots say, and what stands in for those that say nothing."""

from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.plan.measured_durations import ASSUMED_BOOT_SECONDS, Boots, measured_boots
from tests.careen.core.builders import a_node


def test_nodes_without_a_report_get_the_median_of_the_others() -> None:
    nodes = [
        a_node(name, annotations={keys.LAST_REBOOT: f'{{"seconds": {seconds}}}'})
        for name, seconds in (("a", 160), ("b", 260), ("c", 960))
    ]
    assert measured_boots([*nodes, a_node("d")], drain_seconds=60) == Boots(
        of={"a": 100, "b": 200, "c": 900}, others=200, measured=3
    )


def test_a_drain_longer_than_the_whole_leaves_a_second_for_the_boot() -> None:
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
def test_a_report_that_says_nothing_is_not_measured(text: str) -> None:
    assert measured_boots([a_node("a", annotations={keys.LAST_REBOOT: text})], drain_seconds=60) == Boots(
        of={}, others=ASSUMED_BOOT_SECONDS, measured=0
    )
