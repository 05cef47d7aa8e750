"""The gate for maintenance windows. The tests show which windows apply to a node, and which requests of a person allow
a reboot outside of all windows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time

import pytest

from careen.core.facts import keys
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.core.gates.maintenance_window import maintenance_window
from careen.core.gates.question import When
from tests.careen.core.builders import a_node, a_policy, a_situation

FRIDAY_NIGHT = Window(days=frozenset({4}), start=time(22), end=time(4))
OFFICE = Window(days=frozenset(range(5)), start=time(9), end=time(17))


def at(day: int, text: str) -> datetime:
    """Return this time on this day of March 2026. March 1 is a Sunday, so day 6 is a Friday."""
    return datetime.fromisoformat(f"2026-03-{day:02}T{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, Code.OUTSIDE_WINDOW),
        ("until=2026-03-07T00:00:00Z", None),
        ("until=2026-03-06T20:00:00Z", Code.OUTSIDE_WINDOW),
        ("yes", Code.OUTSIDE_WINDOW),
        ("", Code.OUTSIDE_WINDOW),
    ],
)
def test_reboot_now_waives_the_window_until_the_annotation_expires(
    annotation: str | None, expected: Code | None
) -> None:
    node = a_node(annotations={} if annotation is None else {keys.REBOOT_NOW: annotation})
    refused = maintenance_window.ask(a_situation(node, a_policy(window=OFFICE), now=at(6, "21:00")), When.READY)
    assert (refused.code if refused else None) is expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"want": "reboot", "now": True}, None),
        ({"want": "reboot"}, Code.OUTSIDE_WINDOW),
        ({"want": "reboot", "now": True, "boot": "an earlier one"}, Code.OUTSIDE_WINDOW),
        ({"want": "maintenance", "now": True, "until": "2026-03-06T20:00:00Z"}, Code.OUTSIDE_WINDOW),
    ],
    ids=["pending", "the request lacks the field `now`", "already met", "expired"],
)
def test_a_pending_request_waives_the_maintenance_window_if_its_now_field_is_true(
    request_: dict[str, object], expected: Code | None
) -> None:
    node = a_node(annotations={keys.REQUEST: json.dumps(request_)})
    refused = maintenance_window.ask(a_situation(node, a_policy(window=OFFICE), now=at(6, "21:00")), When.READY)
    assert (refused.code if refused else None) is expected


def test_a_node_label_that_careen_changes_for_the_drain_does_not_change_the_nodes_window() -> None:
    web = NamedWindow(name="web", opens=OFFICE, nodes=Selector.parse("pool=web"))
    record = Progress(phase="Draining", claim="c1", boot_left="b", prior_labels={"pool": "web"})
    node = a_node(labels={"pool": "away"}, annotations={keys.PROGRESS: to_annotation(record)})
    situation = a_situation(node, a_policy(window=FRIDAY_NIGHT, windows=(web,)), now=at(6, "10:00"))
    assert maintenance_window.ask(situation, When.CLAIMED) is None


def test_the_refusal_shows_the_window_but_not_the_current_time() -> None:
    refused = maintenance_window.ask(a_situation(policy=a_policy(window=FRIDAY_NIGHT), now=at(6, "21:00")), When.READY)
    assert refused is not None
    assert refused.sentence == "the maintenance window is closed: fri 22:00–04:00 UTC"


BATCH = NamedWindow(name="batch", opens=FRIDAY_NIGHT, nodes=Selector.parse("pool=batch"))
LUNCH = NamedWindow(name="lunch", opens=Window(start=time(12), end=time(13)), nodes=Selector.parse("tier in (a,b)"))


@pytest.mark.parametrize(
    ("labels", "flags", "now", "expected"),
    [
        pytest.param({"pool": "batch"}, Window(), at(6, "22:00"), None, id="the window of the node's group is open"),
        pytest.param(
            {"pool": "batch"},
            Window(),
            at(6, "21:00"),
            "the maintenance window is closed: batch (fri 22:00–04:00 UTC)",
            id="the window of the node's group is closed, and the window of the flags is open",
        ),
        pytest.param({"pool": "batch", "tier": "a"}, Window(), at(4, "12:30"), None, id="one of two windows is open"),
        pytest.param(
            {"pool": "batch", "tier": "a"},
            OFFICE,
            at(4, "13:30"),
            "the maintenance windows are closed: batch (fri 22:00–04:00 UTC); lunch (every day 12:00–13:00 UTC)",
            id="two windows select the node, and both are closed",
        ),
        pytest.param(
            {},
            Window(),
            at(6, "22:00"),
            "no window of --windows selects this node, and --reboot-days, --start-time and --end-time set no window",
            id="no window selects the node",
        ),
        pytest.param(
            {}, OFFICE, at(6, "12:00"), None, id="no window selects the node, and the window of the flags is open"
        ),
        pytest.param(
            {},
            OFFICE,
            at(6, "22:00"),
            "the maintenance window is closed: mon,tue,wed,thu,fri 09:00–17:00 UTC",
            id="no window selects the node, and the window of the flags is closed",
        ),
    ],
)
def test_a_node_may_reboot_in_any_window_that_selects_it(
    labels: dict[str, str], flags: Window, now: datetime, expected: str | None
) -> None:
    policy = replace(a_policy(window=flags), windows=(BATCH, LUNCH))
    refused = maintenance_window.ask(a_situation(a_node(labels=labels), policy, now=now), When.READY)
    assert (refused.sentence if refused else None) == expected
    if refused:
        assert refused.code is (Code.NO_WINDOW if "no window" in refused.sentence else Code.OUTSIDE_WINDOW)


def test_the_annotation_reboot_now_allows_the_reboot_of_a_node_that_no_window_selects() -> None:
    node = a_node(annotations={keys.REBOOT_NOW: "until=2026-03-07T00:00:00Z"})
    policy = replace(a_policy(), windows=(BATCH,))
    assert maintenance_window.ask(a_situation(node, policy, now=at(6, "21:00")), When.READY) is None


def test_the_refusal_shows_cron_windows_and_excluded_dates_briefly() -> None:
    excluded = tuple(Dates(first=date(2026, 3, day), last=date(2026, 3, day + day % 2)) for day in range(1, 7))
    opens = Cron(expression="0 2 * * SUN", seconds=5400)
    windows = tuple(NamedWindow(name=f"w{number}", opens=opens, excluded=excluded) for number in range(5))
    refused = maintenance_window.ask(
        a_situation(policy=replace(a_policy(), windows=windows), now=at(6, "21:00")), When.READY
    )
    assert refused is not None
    dates = "2026-03-01..2026-03-02, 2026-03-02, 2026-03-03..2026-03-04 and 3 more"
    word = f"(cron 0 2 * * SUN for 1h30m UTC) except on {dates}"
    assert refused.sentence == (f"the maintenance windows are closed: w0 {word}; w1 {word}; w2 {word} and 2 more")
