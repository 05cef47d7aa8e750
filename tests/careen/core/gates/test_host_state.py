"""The gate for the state of the host. It refuses the reboot while a required fact about the host is unknown, while the
host's clock is wrong, and while a package manager works on the host."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import Need, NeedAnswer, Unknown
from careen.core.facts.reasons import Code
from careen.core.gates.host_state import host_state
from careen.core.gates.question import When
from tests.careen.core.builders import UNKNOWN_NEED, YES, a_situation


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"need": UNKNOWN_NEED}, Code.NEED_UNKNOWN),
        ({"boot_id": Unknown("no such file")}, Code.BOOT_ID_UNKNOWN),
        ({"clock_skew_seconds": 60.0}, None),
        ({"clock_skew_seconds": 60.1}, Code.CLOCK_SKEW),
        ({"clock_skew_seconds": -60.1}, Code.CLOCK_SKEW),
        ({"clock_skew_seconds": Unknown("no Date header")}, Code.CLOCK_SKEW),
        ({"need": Need(answer=NeedAnswer.YES, package_manager="apt-get")}, Code.PACKAGE_MANAGER),
        ({"need": YES}, None),
    ],
)
def test_an_unknown_or_unsuitable_host_state_refuses_the_reboot(changes: dict[str, Any], expected: Code | None) -> None:
    refused = host_state.ask(a_situation(**changes), When.READY)
    assert (refused.code if refused else None) is expected


def test_the_refusal_says_whether_the_hosts_clock_is_ahead_or_behind() -> None:
    refused = host_state.ask(a_situation(clock_skew_seconds=-75.0), When.READY)
    assert refused is not None
    assert refused.sentence == "the host's clock is 1m15s behind the API server's"
