"""The gate of writes that do not stick. It keeps a node from its claim, its drain and its reboot while a mark on which
decisions rest does not stay on the Node."""

from __future__ import annotations

import pytest

from careen.core.facts.memory import Loss, Losses, Memory
from careen.core.facts.reasons import Code
from careen.core.gates.question import When
from careen.core.gates.writes import writes
from tests.careen.core.builders import UPTIME, a_situation


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize(
    ("not_before", "stops", "is_refused"),
    [
        pytest.param(UPTIME + 1, True, True, id="a mark on which decisions rest"),
        pytest.param(UPTIME, True, False, id="the agent writes it again now"),
        pytest.param(UPTIME + 1, False, False, id="a comfort"),
    ],
)
def test_the_gate_refuses_while_a_mark_on_which_decisions_rest_does_not_stick(
    not_before: float, stops: bool, is_refused: bool, when: When
) -> None:
    loss = Loss(times=2, at=UPTIME, not_before=not_before, wanted="x", found=None, is_reverted=False, stops=stops)
    memory = Memory(node_uid="uid-n1", losses=Losses(marks={"cordon": loss}))
    refused = writes.ask(a_situation(memory=memory), when)
    assert (refused is not None) is is_refused
    if refused is not None:
        assert refused.code is Code.WRITE_NOT_KEPT
        assert refused.sentence == "what the agent writes does not stick: cordon: admission alters the write"
