"""The times that metrics show. They are read from the Node, so that a restarted agent shows the same times."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import Gone, Unknown
from careen.core.facts.phases import Phase
from careen.core.node.on_record import need_since, phase_since
from tests.careen.core.builders import a_node

NOON = 1772625600.0  # 2026-03-04T12:00:00Z


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({keys.PHASE: "Draining", keys.SINCE: "2026-03-04T12:00:00Z"}, NOON),
        ({keys.PHASE: "Waiting", keys.SINCE: "2026-03-04T12:00:00Z"}, None),
        ({keys.PHASE: "Draining", keys.SINCE: "yesterday"}, None),
        ({keys.PHASE: "Draining"}, None),
        ({}, None),
    ],
)
def test_the_start_of_a_phase_is_read_from_the_node(annotations: dict[str, str], expected: float | None) -> None:
    assert phase_since(a_node(annotations=annotations), Phase.DRAINING) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"version":1,"phase":"Waiting","need_since":"2026-03-04T12:00:00Z"}', NOON),
        ('{"version":1,"phase":"Waiting"}', None),
        ('{"version":1,"need_since":"soon"}', None),
        # careen writes no such record: a claim without its boot, a phase of another release.
        ('{"version":1,"phase":"Draining","need_since":"2026-03-04T12:00:00Z"}', None),
        ('{"version":1,"phase":"Levitating","need_since":"2026-03-04T12:00:00Z"}', None),
        ('{"version":1,"claim":"c1","need_since":"2026-03-04T12:00:00Z"}', None),
        ("garbage", None),
        (None, None),
    ],
)
def test_the_time_since_which_a_reboot_is_needed_is_read_from_the_progress_record(
    record: str | None, expected: float | None
) -> None:
    assert need_since(a_node(annotations={} if record is None else {keys.PROGRESS: record})) == expected


@pytest.mark.parametrize("node", [Gone(), Unknown("timed out")])
def test_the_start_of_a_phase_or_need_is_unknown_if_the_node_cannot_be_read(node: Any) -> None:
    assert (phase_since(node, Phase.DRAINING), need_since(node)) == (None, None)
