"""The report of a node's last reboot: how long each part of the reboot took, as far as the agent observed it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Announcement, Mark, Progress
from tests.careen.core.builders import BOOT, NO, UNKNOWN_NEED, YES, a_progress, ago, decided, the_patch

STARTED = Mark(boot="old", uptime=100.0)
REPORT = {
    "at": "2026-03-04T11:59:55Z",
    "boot": BOOT,
    "moves": 4,
    "seconds": 60,
    "labels": {"a": {"was": None, "to": "b"}},
}


def told_after(progress: Progress) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(str(the_patch(decided(progress, need=NO)).annotations[keys.LAST_REBOOT]))
    return value


def announced(boot: str, uptime: float) -> Announcement:
    return Announcement(boot=boot, uptime=uptime, by="me")


@pytest.mark.parametrize(
    ("marks", "seconds"),
    [
        ({"announced": announced("old", 141.6)}, 42),
        ({"drained": Mark(boot="old", uptime=130.0), "announced": announced("old", 200.0)}, 30),  # --reboot-delay
        ({"announced": announced("older", 141.0)}, None),
        ({"announced": announced("old", 99.0)}, None),
        ({}, None),
    ],
)
def test_the_reported_drain_time_ends_with_the_announcement_if_the_end_of_the_drain_is_unknown(
    marks: dict[str, Any], seconds: int | None
) -> None:
    record = a_progress(Phase.VERIFYING, drain_started=STARTED, **marks)
    assert told_after(record).get("drainSeconds") == seconds


def settled(report: object, **changes: Any) -> Decision:
    text = report if isinstance(report, str) else json.dumps(report)
    record = a_progress(Phase.SETTLING, settle_started=changes.pop("settle_started", ago(12.4)))
    return decided(record, node={"annotations": {keys.LAST_REBOOT: text}}, **{"need": NO, "waiters": (), **changes})


def test_the_reboot_report_contains_the_duration_of_the_phase_settling() -> None:
    assert json.loads(str(the_patch(settled(REPORT)).annotations[keys.LAST_REBOOT])) == {
        **REPORT,
        "settleSeconds": 12,
    }


@pytest.mark.parametrize("need", [YES, UNKNOWN_NEED])
def test_the_settle_time_is_reported_even_if_the_host_may_need_another_reboot(need: Any) -> None:
    assert '"settleSeconds":12' in str(the_patch(settled(REPORT, need=need)).annotations[keys.LAST_REBOOT])


@pytest.mark.parametrize(
    ("report", "changes"),
    [
        ({**REPORT, "boot": "another"}, {}),
        ("", {}),
        ("[]", {}),
        ("[" * 9999, {}),
        (REPORT, {"settle_started": None}),
        (REPORT, {"settle_started": Mark(boot="another", uptime=1.0)}),
        (REPORT, {"settle_started": ago(-5)}),
    ],
)
def test_the_settle_time_is_written_only_into_the_report_of_the_current_boot(
    report: object, changes: dict[str, Any]
) -> None:
    assert keys.LAST_REBOOT not in the_patch(settled(report, **changes)).annotations


@pytest.mark.parametrize(
    "value",
    ["[" * 400 + "]" * 400, '{"a":' * 400 + "1" + "}" * 400, "9" * 4999, "1e999", '"' + "x" * 2000 + '"', "true"],
)
def test_unknown_fields_of_the_reboot_report_are_not_written_again(value: str) -> None:
    text = json.dumps(REPORT)[:-1] + f', "theirs": {value}}}'
    written = str(the_patch(settled(text)).annotations.get(keys.LAST_REBOOT, "{}"))
    assert "theirs" not in json.loads(written)
