"""Tests the setting that lists maintenance windows: accepted values, and errors with line and field."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.settings import last_good, live
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, Resolved, resolve

BERLIN = ZoneInfo("Europe/Berlin")
WRITTEN = """\
time-zone: Europe/Berlin
windows:
  - name: weeknights
    days: [mo, tu, we, th]
    start: 22:00
    end: 04:00
    nodes: pool=batch,!canary
    exclude: [2026-12-24..2027-01-02, 2026-10-03]
  - name: sunday
    cron: "0 2 * * SUN"
    duration: 4h
    time-zone: UTC
"""
MEANT = (
    NamedWindow(
        name="weeknights",
        opens=Window(days=frozenset(range(4)), start=time(22), end=time(4), zone=BERLIN),
        nodes=Selector.parse("pool=batch,!canary"),
        excluded=(
            Dates(first=date(2026, 10, 3), last=date(2026, 10, 3)),
            Dates(first=date(2026, 12, 24), last=date(2027, 1, 2)),
        ),
    ),
    NamedWindow(name="sunday", opens=Cron(expression="0 2 * * SUN", seconds=4 * 3600.0, zone=UTC)),
)


def resolved(text: str) -> Resolved:
    return resolve(
        flags={"node_id": ["n1"]},
        environment={},
        config_map=live.parse(text, "careen"),
        config_map_name="careen",
    )


def test_times_dates_and_selectors_of_windows_are_read_as_written() -> None:
    assert policy_of(resolved(WRITTEN).settings).windows == MEANT


def test_a_flag_and_an_environment_variable_give_the_same_windows() -> None:
    texts = resolved(WRITTEN).origins["windows"].texts
    zone = {"time_zone": ["Europe/Berlin"]}
    by_flags = resolve(flags={"node_id": ["n1"], "windows": list(texts), **zone}, environment={})
    listed = WRITTEN.partition("windows:\n")[2]
    by_variable = resolve(flags={"node_id": ["n1"], **zone}, environment={"CAREEN_WINDOWS": listed})
    assert policy_of(by_flags.settings).windows == policy_of(by_variable.settings).windows == MEANT


def test_windows_stored_in_the_nodes_annotation_can_be_read_again() -> None:
    kept = last_good.to_annotation(resolved(WRITTEN))
    again = last_good.restore(kept, "why", flags={"node_id": ["n1"]}, environment={}, name="careen")
    assert again.is_whole
    assert policy_of(again.resolved.settings).windows == MEANT


def test_the_windows_in_the_documentation_are_accepted() -> None:
    page = (Path(__file__).parents[3] / "docs" / "windows.md").read_text()
    windows = policy_of(resolved(page.partition("```yaml\n")[2].partition("```")[0]).settings).windows
    assert [(each.name, each.opens.zone.key) for each in windows] == [  # type: ignore[attr-defined]
        ("weeknights", "Europe/Berlin"),
        ("first-sunday", "America/New_York"),
    ]


def test_yaml_anchors_and_merges_in_windows_are_resolved() -> None:
    text = WRITTEN.replace("- name: sunday", "- &sunday\n    name: sunday") + "  - {<<: *sunday, name: again}\n"
    windows = policy_of(resolved(text).settings).windows
    assert [each.name for each in windows] == ["weeknights", "sunday", "again"]
    assert windows[1].opens == windows[2].opens


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("  - {name: x, start: 25:00}", "line 13: `windows[2].start`: '25:00': expected a time of day"),
        ("  - name: x\n    end: 3\n    start: [4]", "line 15: `windows[2].start`: expected one value"),
        ("  - name: x\n    cron: 0 2 * *\n    duration: 1h", "line 14: `windows[2].cron`: '0 2 * *': expected a cron"),
        ("  - name: x\n    cron: 0 0 30 2 *\n    duration: 1h", "line 14: `windows[2].cron`: '0 0 30 2 *': expected a"),
        ("  - {name: x, cron: 0 2 * * *}", "line 13: `windows[2].duration`: the field is missing"),
        ("  - {name: x, cron: 0 2 * * *, duration: 30s}", "line 13: `windows[2].duration`: '30s': expected a duration"),
        ("  - {name: x, cron: 0 2 * * *, duration: 169h}", "line 13: `windows[2].duration`: '169h': expected a"),
        (
            "  - {name: x, cron: 0 2 * * *, duration: 1h, end: 3}",
            "line 13: `windows[2].end`: a window with `cron` cannot have the field `end`",
        ),
        ("  - {name: x, start: 2, duration: 1h}", "line 13: `windows[2].duration`: `duration` needs the field `cron`"),
        ("  - {name: x, start: 2, end: 02:00}", "line 13: `windows[2].end`: the end is the same as the start"),
        ("  - {name: x, nodes: a=b}", "line 13: `windows[2]`: the window does not say when it opens"),
        ("  - {start: 2}", "line 13: `windows[2].name`: the field is missing"),
        ("  - {name: ü, start: 2}", "line 13: `windows[2].name`: 'ü': expected a name"),
        ("  - {name: x, days: []}", "line 13: `windows[2].days`: expected a list with at least one value"),
        ("  - {name: x, days: [mo, xx]}", "line 13: `windows[2].days`: 'xx': expected a weekday"),
        ("  - {name: x, start: 2, nodes: ''}", "line 13: `windows[2].nodes`: expected one value"),
        (
            "  - {name: x, start: 2, nodes: 'a in'}",
            "line 13: `windows[2].nodes`: 'a in': 'a in' is not a label selector",
        ),
        ("  - {name: x, start: 2, time-zone: Mars}", "line 13: `windows[2].time-zone`: 'Mars': expected a time zone"),
        ("  - {name: x, start: 2, exclude: [2026-02-30]}", "line 13: `windows[2].exclude`: '2026-02-30': expected a"),
        ("  - {name: x, start: 2, exclude: 2026-3-5}", "line 13: `windows[2].exclude`: '2026-3-5': expected a date"),
        ("  - {name: x, start: 2, exclude: [9999-12-31]}", "line 13: `windows[2].exclude`: '9999-12-31': expected a"),
        ("  - {name: x, start: 2, exclude: 2026-03-05..2026-03-01}", "the last date is before the first"),
        ("  - {name: x, start: 2, exclude: {a: b}}", "line 13: `windows[2].exclude`: expected a list of values"),
        (
            "  - {name: x, strat: 2}",
            "line 13: `windows[2].strat`: the field is unknown; the known fields are name, days",
        ),
        ("  - {name: x, start: 2, start: 3}", "line 13: the key start appears twice"),
        ("  - nights", "line 13: `windows[2]`: expected a mapping with the fields name, days"),
        ("  - [a]", "line 13: `windows[2]`: expected a mapping"),
        ("  -", "line 13: `windows[2]`: expected"),
        ("  - {name: sunday, start: 2}", "--windows has two entries named sunday"),
    ],
)
def test_a_problem_of_a_window_is_reported_with_line_and_field(added: str, problem: str) -> None:
    with pytest.raises(BadSettings) as refused:
        resolved(f"{WRITTEN}{added}\n")
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]


@pytest.mark.parametrize("value", ["{name: x, start: 2}", "5", "true"])
def test_windows_that_are_not_a_list_are_refused(value: str) -> None:
    with pytest.raises(BadSettings, match="not a list of mappings"):
        resolved(f"windows: {value}\n")


@pytest.mark.parametrize("value", ["", "[]", "''", "~"])
def test_an_empty_list_of_windows_has_the_same_effect_as_no_list(value: str) -> None:
    """All nodes then have the window of kured's flags, which is always open by default."""
    assert resolved(f"windows: {value}\n").settings.windows == ()


def test_all_problems_of_windows_are_reported_at_once() -> None:
    with pytest.raises(BadSettings) as refused:
        resolved("windows:\n- {name: a, start: 30}\n- {name: b, end: x}\nconcurrency: 0\n")
    assert len(refused.value.problems) == 3


@given(st.text(alphabet="{}[]:,-'\"&*<! \nabn1=%?|>~é", max_size=40))
def test_every_text_for_windows_is_accepted_or_refused_with_a_message(text: str) -> None:
    for given_as in ({"flags": {"windows": [text]}}, {"flags": {}, "environment": {"CAREEN_WINDOWS": text}}):
        with contextlib.suppress(BadSettings):
            resolve(**{"environment": {}, **given_as, "flags": {"node_id": ["n1"], **given_as["flags"]}})  # type: ignore[arg-type]
