"""The gate that refuses a reboot while alerts are active. It filters alerts as kured does."""

from __future__ import annotations

import re
from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Alert, Unknown
from careen.core.facts.policy import AlertPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.alerts import alerts
from careen.core.gates.question import When
from tests.careen.core.builders import a_policy, a_situation

FIRING = Alert(name="DiskFull")
PENDING = Alert(name="DiskFull", state="pending")
WATCHDOG = Alert(name="Watchdog")
OWN = Alert(name="CareenRebootOverdue")
IGNORE = re.compile("^Watchdog$")


@pytest.mark.parametrize(
    ("policy", "active", "expected"),
    [
        (None, Unknown("no source"), None),
        (AlertPolicy(), (), None),
        (AlertPolicy(), (FIRING,), Code.ALERT),
        (AlertPolicy(), (PENDING,), Code.ALERT),
        (AlertPolicy(firing_only=True), (PENDING,), None),
        (AlertPolicy(firing_only=True), (FIRING,), Code.ALERT),
        (AlertPolicy(filter_regexp=IGNORE), (WATCHDOG,), None),
        (AlertPolicy(filter_regexp=IGNORE), (WATCHDOG, FIRING), Code.ALERT),
        (AlertPolicy(filter_regexp=IGNORE, match_only=True), (WATCHDOG,), Code.ALERT),
        (AlertPolicy(filter_regexp=IGNORE, match_only=True), (FIRING,), None),
        (AlertPolicy(filter_regexp=re.compile("Disk")), (FIRING,), None),
        (AlertPolicy(match_only=True), (FIRING,), None),
        (AlertPolicy(), (OWN,), None),
        (AlertPolicy(), (OWN, FIRING), Code.ALERT),
        (AlertPolicy(filter_regexp=IGNORE), (OWN, WATCHDOG), None),
        (AlertPolicy(filter_regexp=re.compile("^Careen"), match_only=True), (OWN,), Code.ALERT),
        (AlertPolicy(filter_regexp=re.compile("Disk"), match_only=True), (OWN,), None),
        (AlertPolicy(), Unknown("timed out after 10 s"), Code.ALERTS_UNKNOWN),
        (AlertPolicy(), NOT_ASKED, Code.ALERTS_UNKNOWN),
    ],
)
def test_the_name_and_state_of_an_alert_decide_whether_the_gate_refuses(
    policy: AlertPolicy | None, active: Any, expected: Code | None
) -> None:
    refused = alerts.ask(a_situation(policy=a_policy(alerts=policy), alerts=active), When.READY)
    assert (refused.code if refused else None) is expected


def test_the_refusal_lists_each_alert_once() -> None:
    active = tuple(Alert(name=name) for name in ("D", "A", "B", "A", "C"))
    refused = alerts.ask(a_situation(policy=a_policy(alerts=AlertPolicy()), alerts=active), When.READY)
    assert refused is not None
    assert refused.sentence == "these alerts are active: A, B, C and 1 more"
