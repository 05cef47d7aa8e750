"""The gate that refuses after three drains that were undone within a day."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory, KnownOwner
from careen.core.facts import keys
from careen.core.facts.reasons import Code
from careen.core.gates.question import When
from careen.core.gates.undone_drains import undone_drains
from tests.careen.core.builders import NOW, a_node, a_policy, a_situation


def hours_ago(*hours: float) -> tuple[datetime, ...]:
    return tuple(NOW - timedelta(hours=each) for each in hours)


@pytest.mark.parametrize(
    ("undone", "refuses"),
    [
        pytest.param((), False, id="no undone drain"),
        pytest.param(hours_ago(3, 2), False, id="two"),
        pytest.param(hours_ago(3, 2, 1), True, id="three"),
        pytest.param(hours_ago(23, 2, 1), True, id="three within a day"),
        pytest.param(hours_ago(25, 2, 1), False, id="the first more than a day ago"),
        pytest.param(hours_ago(-1, -1, -1), False, id="in the future: a wrong clock wrote them"),
    ],
)
def test_the_gate_refuses_after_three_undone_drains_within_a_day(undone: tuple[datetime, ...], refuses: bool) -> None:
    memory = DrainMemory(undone=undone)
    node = a_node(annotations={keys.DRAIN_MEMORY: drain_memory.to_annotation(memory)} if undone else {})
    refused = undone_drains.ask(a_situation(node), When.READY)
    assert (refused.code if refused else None) is (Code.UNDONE_DRAINS if refuses else None)


def test_the_refusal_names_what_did_not_leave_the_next_try_and_the_remedy() -> None:
    known = {"Cluster shop/pg": KnownOwner(undone=1), "Cluster shop/calm": KnownOwner()}
    memory = DrainMemory(known=known, undone=hours_ago(3, 2, 1))
    node = a_node(annotations={keys.DRAIN_MEMORY: drain_memory.to_annotation(memory)})
    refused = undone_drains.ask(a_situation(node), When.READY)
    assert refused is not None
    assert refused.sentence == (
        "never (seen): 3 drains were undone within a day because pods of Cluster shop/pg did not leave; the next try "
        "is at 2026-03-05T09:00:00Z"
    )
    assert refused.remedy == "`careen retry n1` tries at once"
    assert undone_drains.ends(node, a_policy()) == NOW + timedelta(hours=21)
    assert undone_drains.ends(a_node(), a_policy()) is None
