"""The gate for the minimum time between two reboots of one node."""

from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.core.facts.reasons import Code
from careen.core.gates.minimum_interval import minimum_interval
from careen.core.gates.question import When
from tests.careen.core.builders import a_node, a_policy, a_situation

AN_HOUR_AGO = '{"at":"2026-03-04T11:00:00Z"}'


@pytest.mark.parametrize(
    ("last", "interval", "more", "expected"),
    [
        (AN_HOUR_AGO, 3600, {}, None),
        (AN_HOUR_AGO, 3601, {}, Code.MINIMUM_INTERVAL),
        (AN_HOUR_AGO, 0, {}, None),
        (None, 3601, {}, None),
        ("garbage", 3601, {}, None),
        ('{"at":7}', 3601, {}, None),
        (AN_HOUR_AGO, 3601, {keys.REBOOT_NOW: "until=2026-03-04T13:00:00Z"}, None),
    ],
)
def test_the_gate_refuses_a_second_reboot_within_the_minimum_interval(
    last: str | None, interval: float, more: dict[str, str], expected: Code | None
) -> None:
    node = a_node(annotations={**({keys.LAST_REBOOT: last} if last else {}), **more})
    refused = minimum_interval.ask(a_situation(node, a_policy(minimum_interval_seconds=interval)), When.READY)
    assert (refused.code if refused else None) is expected
