from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.core.facts.times import from_rfc3339
from tests.careen.cli.conftest import Desk


def test_retry_annotates_a_failed_node(desk: Desk) -> None:
    desk.node("n1", "Failed", reason="the reboot command failed with exit code 1")
    assert desk.ok("retry", "n1").splitlines() == [
        "n1 failed: the reboot command failed with exit code 1",
        "Requested: the agent of n1 sees the request in the next turn; `careen why n1` shows the outcome.",
    ]
    assert from_rfc3339(desk.annotations("n1")[keys.RETRY]) is not None


@pytest.mark.parametrize("phase", ["", "Draining", "Rebooting"], ids=["idle", "draining", "rebooting"])
def test_retry_refuses_a_node_that_did_not_fail(desk: Desk, phase: str) -> None:
    desk.node("n1", phase)
    result = desk.run("retry", "n1")
    assert result.exit_code == 2
    assert (
        f"n1 is {phase or 'Idle'}, so there is nothing to try again; `careen why n1` shows the node's state"
        in result.output
    )
    assert desk.writes() == 0
