"""The agent's own count of waiting nodes. In a large fleet, the agent of a node that may not reboot yet counts the
waiting nodes. If more than a hundred nodes wait, the agent sleeps longer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from tests.careen.core.builders import UPTIME, a_progress, decided, remembering

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
OLD_NEED = a_progress(
    Phase.WAITING, need_since="2026-03-04T11:00:00Z", taint_key=OURS.key, tainted_at="2026-03-04T11:00:00Z"
)
HELD = {"taints": (OURS,), "annotations": {keys.HOLD: "people"}}


def refused(record: Any = OLD_NEED, *, agents: int | None = 5000, **changes: Any) -> Decision:
    given = {"memory": remembering(agents=agents), "node": HELD, "lock": LockContent(), **changes}
    return decided(record, **given)


@pytest.mark.parametrize(
    ("changes", "asks"),
    [
        pytest.param({}, True, id="the lock lacks the number of waiting nodes"),
        pytest.param({"lock": LockContent(is_paused=True)}, True, id="the lock is paused"),
        pytest.param({"lock": "{"}, True, id="the lock contains unparsable text"),
        pytest.param(
            {"agents": 180}, False, id="at most 180 nodes can wait, so a count would not change the agent's pause"
        ),
        pytest.param({"agents": None}, False, id="the number of agents is unknown"),
        pytest.param(
            {"lock": LockContent(line=Line(names=("n7",), at="2026-03-04T11:58:30Z", waiting=20))},
            False,
            id="the lock contains a count of the waiting nodes that is 90 seconds old",
        ),
        pytest.param(
            {"record": replace(OLD_NEED, need_since="2026-03-04T11:58:30Z")},
            False,
            id="the node has needed a reboot for only 90 seconds",
        ),
        pytest.param(
            {"memory": remembering(agents=5000, crowd__count=None, crowd__until=UPTIME + 1)},
            False,
            id="this agent's recent count found more than a hundred waiting nodes",
        ),
        pytest.param(
            {"memory": remembering(agents=5000, crowd__count=3, crowd__until=UPTIME)},
            True,
            id="this agent counted the waiting nodes too long ago",
        ),
    ],
)
def test_a_refused_node_counts_the_waiting_nodes_if_no_recent_count_exists(changes: dict[str, Any], asks: bool) -> None:
    assert (refused(**{"crowd": NOT_ASKED, **changes}).wants == {Evidence.CROWD}) is asks


@pytest.mark.parametrize(
    ("crowd", "look", "holds"),
    [
        pytest.param(3, 30.0, 120.0, id="three nodes wait"),
        pytest.param(100, 30.0, 120.0, id="a hundred nodes wait"),
        pytest.param(None, 5000 / 6, 5000.0, id="more than a hundred nodes wait"),
        pytest.param(Unknown("503"), 5000 / 6, 5000.0, id="the agent failed to count the waiting nodes"),
    ],
)
def test_the_agent_of_a_refused_node_sleeps_half_a_minute_if_at_most_a_hundred_nodes_wait(
    crowd: Any, look: float, holds: float
) -> None:
    """If more nodes wait, or if the agent failed to count them, the agent assumes that all 5,000 nodes wait. Then the
    agent sleeps for about 14 minutes."""
    decision = refused(crowd=crowd)
    assert decision.look_again_seconds == pytest.approx(look)
    assert decision.memory.crowd.until == UPTIME + holds
    again = refused(crowd=NOT_ASKED, memory=decision.memory)
    assert (again.wants, again.look_again_seconds) == (frozenset(), pytest.approx(look))


def test_an_expired_count_of_waiting_nodes_does_not_change_how_long_the_agent_sleeps() -> None:
    old = remembering(agents=5000, crowd__count=3, crowd__until=UPTIME - 1)
    young = replace(OLD_NEED, need_since="2026-03-04T11:59:30Z")
    assert refused(young, memory=old).look_again_seconds == pytest.approx(5000 / 6)
