"""The gate that refuses a reboot while another reboot coordinator runs in the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.reasons import Code
from careen.core.gates.foreign_coordinator import foreign_coordinator
from careen.core.gates.question import When
from tests.careen.core.builders import a_situation


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        ((), None),
        (("DaemonSet kube-system/kured runs on 3 nodes",), Code.FOREIGN_COORDINATOR),
        (Unknown("403"), Code.FOREIGN_COORDINATOR),
        (NOT_ASKED, Code.FOREIGN_COORDINATOR),
    ],
)
def test_an_active_foreign_coordinator_refuses_the_reboot(foreign: Any, expected: Code | None) -> None:
    refused = foreign_coordinator.ask(a_situation(foreign=foreign), When.READY)
    assert (refused.code if refused else None) is expected
