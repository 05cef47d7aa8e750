"""The situation (`careen.core.situation`): a step that lacks facts ends with one request, and a decision keeps what its
step remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from careen.core.decide import STEPS, decide
from careen.core.decision import Decision
from careen.core.facts.observation import NOT_ASKED, Holders, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.outcomes import Status, Stay, stay
from careen.core.situation import NotRead, Situation, known
from tests.careen.core.builders import (
    UPTIME,
    a_marked_node,
    a_policy,
    a_progress,
    a_reading,
    a_situation,
    an_entry,
    an_observation,
    held,
)

UNREAD = {"holders": NOT_ASKED, "waiters": NOT_ASKED, "pods": NOT_ASKED}


def test_a_fact_that_could_not_be_read_is_not_known() -> None:
    situation = a_situation(holders=Unknown("timeout"), crowd=None, waiters=())
    assert situation.read(Evidence.HOLDERS) is None
    assert situation.read(Evidence.CROWD) is None
    assert situation.read(Evidence.WAITERS) == ()
    assert known(NOT_ASKED) is None


def test_of_two_claims_of_one_instant_one_is_older_than_the_other() -> None:
    lock = a_reading(held(an_entry("n1", "c1"), an_entry("n2", "c2")))
    first = a_situation(a_marked_node(a_progress(Phase.DRAINING, claim="c1")), lock=lock)
    second = a_situation(a_marked_node(a_progress(Phase.DRAINING, claim="c2"), name="n2"), lock=lock)
    assert (first.older_holders, second.older_holders) == ((), ("n1",))


def test_a_step_reads_a_fact_that_was_not_asked_for() -> None:
    with pytest.raises(NotRead) as ended:
        a_situation(**UNREAD).read(Evidence.HOLDERS)
    assert ended.value.kinds == {Evidence.HOLDERS}


def test_one_request_names_all_lacking_facts() -> None:
    situation = a_situation(**UNREAD | {"holders": Holders()})
    situation.need(Evidence.HOLDERS)
    with pytest.raises(NotRead) as ended:
        situation.need(Evidence.HOLDERS, Evidence.WAITERS, Evidence.PODS)
    assert ended.value.kinds == {Evidence.WAITERS, Evidence.PODS}
    with pytest.raises(NotRead) as again:
        situation.read_again(Evidence.HOLDERS, Evidence.WAITERS)
    assert again.value.kinds == {Evidence.HOLDERS, Evidence.WAITERS}


def counting(situation: Situation) -> Decision:
    """Remembers on a copy of the situation, needs the waiting nodes, and remembers once more."""
    copy = replace(situation, seen=replace(situation.seen, pods=()))
    copy.remember(moves_counted_at=3.0)
    situation.read(Evidence.WAITERS)
    situation.remember(lock_due=1.0)
    return stay(situation, Status(Code.HOME, "", is_silent=True), Stay(look=1.0))


@pytest.mark.parametrize(("waiters", "wants", "lock_due"), [(NOT_ASKED, {Evidence.WAITERS}, None), ((), set(), 1.0)])
def test_a_decision_carries_what_its_step_remembered(
    waiters: object, wants: set[Evidence], lock_due: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STEPS, Phase.WAITING, counting)
    seen = an_observation(a_marked_node(a_progress(Phase.WAITING)), waiters=waiters)
    decisions = [decide(seen, a_policy()) for _ in range(2)]
    assert decisions[0] == decisions[1], "no decision sees what another remembered"
    assert decisions[0].wants == wants
    assert (decisions[0].memory.moves_counted_at, decisions[0].memory.lock_due) == (3.0, lock_due)
    assert seen.memory.moves_counted_at == UPTIME
