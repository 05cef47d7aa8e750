"""The gate that limits how often a node reboots for the same reason."""

from __future__ import annotations

import pytest

from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.gates.loop_limit import loop_limit
from careen.core.gates.question import When
from tests.careen.core.builders import a_marked_node, a_policy, a_progress, a_situation


@pytest.mark.parametrize(
    ("reboots", "limit", "expected"),
    [(0, 1, None), (1, 1, None), (2, 1, Code.LOOP_LIMIT), (1, 0, Code.LOOP_LIMIT), (0, 0, None)],
)
def test_every_reboot_after_the_first_counts_towards_the_loop_limit(
    reboots: int, limit: int, expected: Code | None
) -> None:
    node = a_marked_node(a_progress(Phase.WAITING, reboots_for_need=reboots))
    refused = loop_limit.ask(a_situation(node, a_policy(reboot_loop_limit=limit)), When.READY)
    assert (refused.code if refused else None) is expected
