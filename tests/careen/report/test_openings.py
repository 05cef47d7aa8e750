"""Tests how `careen status`, `why` and `plan` print the next opening of a window, in the cluster's time zone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo

import pytest

from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Cron, NamedWindow, Window
from careen.rollout.openings import in_zone, next_opening, opening_clause, shut_at
from tests.careen.core.builders import a_node, a_policy

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
NIGHTS = NamedWindow(name="nights", opens=Window(start=time(22), end=time(4)), nodes=Selector.parse("pool=web"))
SUNDAYS = NamedWindow(
    name="sundays", opens=Cron(expression="0 2 * * SUN", seconds=3600), nodes=Selector.parse("pool=batch")
)
POLICY = replace(a_policy(window=Window(zone=BERLIN)), windows=(NIGHTS, SUNDAYS))
WEB, BATCH, OTHER = (a_node(pool, labels={"pool": pool}) for pool in ("web", "batch", "other"))


@pytest.mark.parametrize(
    ("at", "zone", "told"),
    [
        (NOW, UTC, "Wed 2026-03-04 12:00 UTC"),
        (NOW, BERLIN, "Wed 2026-03-04 13:00 CET (Europe/Berlin)"),
        (NOW.replace(month=7, second=5), BERLIN, "Sat 2026-07-04 14:00:05 CEST (Europe/Berlin)"),
        (NOW, ZoneInfo("Asia/Kathmandu"), "Wed 2026-03-04 17:45 +0545 (Asia/Kathmandu)"),
    ],
)
def test_the_next_opening_of_the_window_is_printed_with_its_time_zone(at: datetime, zone: tzinfo, told: str) -> None:
    assert in_zone(at, zone) == told


def test_the_next_opening_is_the_earliest_opening_of_the_nodes_windows() -> None:
    assert next_opening(POLICY, [WEB, BATCH], NOW) == NOW.replace(hour=22)
    assert next_opening(POLICY, [BATCH, OTHER], NOW) == datetime(2026, 3, 8, 2, tzinfo=UTC)
    assert next_opening(POLICY, [WEB], NOW.replace(hour=23)) == NOW.replace(hour=23)
    assert next_opening(POLICY, [OTHER], NOW) is None
    assert next_opening(POLICY, [], NOW) is None


def test_the_next_opening_of_the_window_is_printed_with_the_time_until_then() -> None:
    assert (
        opening_clause(POLICY, [WEB], NOW)
        == "the next window opens at Wed 2026-03-04 23:00 CET (Europe/Berlin), in 10h"
    )
    assert opening_clause(POLICY, [WEB], NOW.replace(hour=23)) == "a window has opened in the meantime"
    assert opening_clause(POLICY, [OTHER], NOW) == "no window ever opens"


def test_a_plan_that_begins_while_all_windows_are_closed_says_so() -> None:
    assert shut_at(POLICY, [WEB, BATCH], NOW) == [
        (
            "the maintenance windows are closed when the plan begins; "
            "the first window opens Wed 2026-03-04 23:00 CET (Europe/Berlin)"
        )
    ]
    assert shut_at(POLICY, [OTHER], NOW) == ["no maintenance window of these nodes ever opens"]
    assert shut_at(POLICY, [WEB], NOW.replace(hour=23)) == shut_at(POLICY, [], NOW) == []
