"""The annotation with the last five reboots of a node, newest first. Its size is limited. An annotation with invalid
content causes no error."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Announcement
from careen.core.steps.shared.history import MOST, Reboot, reboots_of, with_one_more
from scheduler_core.values import replace_value
from tests.careen.core.builders import NO, NOW, a_node, a_progress, decided, the_patch

ONE = Reboot(at=NOW, why="a new kernel", seconds=300, moves=7)


def telling(text: str, last: str = "") -> Any:
    return a_node(annotations={keys.HISTORY: text} | ({keys.LAST_REBOOT: last} if last else {}))


def test_the_history_keeps_the_newest_five_reboots() -> None:
    node = a_node()
    for day in range(7):
        node = telling(with_one_more(node, Reboot(at=NOW + timedelta(days=day), why=f"need {day}")))
    assert [each.why for each in reboots_of(node)] == ["need 6", "need 5", "need 4", "need 3", "need 2"]
    assert len(json.loads(node.annotations[keys.HISTORY])) == MOST


def test_the_history_contains_the_same_reboot_only_once() -> None:
    """The agent repeats the patch if the response to the patch was lost."""
    node = telling(with_one_more(a_node(), ONE))
    assert reboots_of(telling(with_one_more(node, ONE))) == (ONE,)


def test_a_history_entry_is_short_and_on_one_line() -> None:
    node = a_node()
    for day in range(9):
        node = telling(with_one_more(node, Reboot(at=NOW + timedelta(days=day), why="\x1b[31mü\n" * 50_000)))
    text = node.annotations[keys.HISTORY]
    assert len(text) < 2000
    assert not {"\x1b", "\n"} & set(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "what?",
        "null",
        "7",
        '"x"',
        "[]",
        "[7]",
        '[{"at":7}]',
        '[{"at":"soon"}]',
        '[{"at":"9999-12-31T00:00:00Z"}]',
        "[" * 100000,
        '[{"why":"x"}]',
        '{"at":"2026-01-01T00:00:00Z"}',
    ],
)
def test_an_invalid_history_is_read_as_empty_and_is_replaced(text: str) -> None:
    assert reboots_of(telling(text)) == ()
    assert reboots_of(telling(with_one_more(telling(text), ONE))) == (ONE,)


@pytest.mark.parametrize("more", [{"seconds": -1}, {"seconds": "x"}, {"seconds": 1e300}, {"moves": True}, {"why": []}])
def test_an_invalid_field_of_the_history_is_left_out(more: dict[str, Any]) -> None:
    (found,) = reboots_of(telling(json.dumps([{"at": "2026-03-04T12:00:00Z", **more}])))
    assert found == Reboot(at=NOW)


def test_the_history_contains_the_last_reboot_report_that_an_older_release_wrote() -> None:
    last = '{"at":"2026-03-04T12:00:00Z","seconds":300,"moves":7}'
    assert reboots_of(a_node(annotations={keys.LAST_REBOOT: last})) == (Reboot(at=NOW, seconds=300, moves=7),)


def test_the_history_entry_contains_the_reason_the_duration_and_the_pods_of_the_reboot() -> None:
    record = a_progress(Phase.VERIFYING, drain_started_at="2026-03-04T11:55:00Z", displaced=7)
    node = {"annotations": {keys.NEED: "a new kernel"}}
    decision = decided(record, node=node, need=NO)
    assert decision.phase is Phase.SETTLING
    expected = replace_value(ONE, need_since=NOW - timedelta(hours=1))
    assert reboots_of(telling(str(the_patch(decision).annotations[keys.HISTORY]))) == (expected,)


def test_the_history_entry_contains_both_kernels_and_the_moves_of_the_forecast() -> None:
    announced = Announcement(boot="boot-0", uptime=5.0, kernel="6.1.0-28")
    counts = {"stays": 4, "moves": 9, "returns": 1, "pending": 0}
    node = {"annotations": {keys.FORECAST: json.dumps({"counts": counts})}, "kernel": "6.1.0-29"}
    decision = decided(a_progress(Phase.VERIFYING, announced=announced), node=node, need=NO)
    (found,) = reboots_of(telling(str(the_patch(decision).annotations[keys.HISTORY])))
    assert (found.kernel_left, found.kernel, found.forecast_moves) == ("6.1.0-28", "6.1.0-29", 10)


def test_a_history_entry_keeps_everything_that_it_records() -> None:
    whole = Reboot(
        at=NOW,
        why="a new kernel",
        seconds=300,
        moves=7,
        forecast_moves=8,
        need_since=NOW - timedelta(days=1),
        kernel_left="6.1.0-28",
        kernel="6.1.0-29",
        refused={"outside-window": 3600, "alerts": 60},
    )
    assert reboots_of(telling(with_one_more(a_node(), whole))) == (whole,)


@pytest.mark.parametrize("value", [1, [], {}, None, "x" * 1000, {"a": "b"}, {str(each): 1 for each in range(99)}])
def test_a_history_entry_with_nonsense_has_a_limited_length(value: Any) -> None:
    names = ("kernel", "kernelLeft", "needSince", "refused", "forecast")
    row = {"at": "2026-03-04T12:00:00Z"} | dict.fromkeys(names, value)
    (found,) = reboots_of(telling(json.dumps([row])))
    assert len(with_one_more(a_node(), found)) < 500


def test_the_reason_for_the_reboot_is_kept_until_the_history_is_written() -> None:
    from dataclasses import replace

    from tests.careen.core.builders import YES

    decision = decided(need=replace(YES, detail="/var/run/reboot-required is there"))
    assert the_patch(decision).annotations[keys.NEED] == "/var/run/reboot-required is there"
