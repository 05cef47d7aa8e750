"""When each agent sets careen's soft taint (PreferNoSchedule) on its node. In fleets of more than 500 agents, these
times are spread evenly over at most a minute, whatever the names of the nodes are. In smaller fleets, all agents set
the taint at once."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.lock.pauses import MANY_AGENTS, SPREAD_SECONDS
from careen.core.steps.shared.stagger import delay_seconds

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NAMES = {
    "numbered": [f"node-{number:05}" for number in range(5000)],
    "addresses": [f"ip-10-{number // 256}-{number % 256}-17.eu-central-1.compute.internal" for number in range(5000)],
    "random": [str(uuid.UUID(int=number * 2**64 + 7)) for number in range(5000)],
}


# If there are at most 500 agents or their number is unknown, each agent sets the taint of its node without a delay.
@given(st.text(), st.integers(0, MANY_AGENTS) | st.none())
def test_a_small_or_unknown_fleet_sets_each_taint_at_once(node: str, agents: int | None) -> None:
    assert delay_seconds(node, agents, NOON) == 0.0


@given(st.text(), st.integers(MANY_AGENTS + 1, 10**6), st.integers(MANY_AGENTS + 1, 10**6))
def test_each_node_of_a_large_fleet_sets_its_taint_within_a_minute(node: str, agents: int, others: int) -> None:
    assert 0.0 <= delay_seconds(node, agents, NOON) < SPREAD_SECONDS == 60.0
    assert delay_seconds(node, agents, NOON) == delay_seconds(node, others, NOON)


@given(st.text(), st.floats(0, 3600), st.floats(0, 60))
def test_a_restarted_agent_keeps_the_time_at_which_it_sets_the_taint(node: str, second: float, later: float) -> None:
    first = delay_seconds(node, 5000, NOON + timedelta(seconds=second))
    again = delay_seconds(node, 5000, NOON + timedelta(seconds=second + later))
    assert again == pytest.approx(first - later, abs=1e-3) or later > first - 1e-3


@given(st.text(), st.floats(0, 55))
def test_a_process_that_restarts_often_also_sets_its_taint_within_a_minute(node: str, offset: float) -> None:
    starts = [NOON + timedelta(seconds=offset + 4.9 * number) for number in range(14)]
    assert any(delay_seconds(node, 5000, start) == 0.0 for start in starts)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [MANY_AGENTS + 1, 5000])
def test_taints_are_spread_evenly_over_the_minute(kind: str, count: int) -> None:
    """In each period of ten seconds, a sixth of the agents set their taint. The allowed difference is five standard
    deviations of a random spread."""
    delays = [delay_seconds(name, count, NOON) for name in NAMES[kind][:count]]
    at_once = sum(delay == 0.0 for delay in delays)
    assert at_once < MANY_AGENTS
    tenths = Counter(int(delay // 10) for delay in delays if delay > 0.0)
    fair = count / 6
    assert set(tenths) == set(range(6))
    assert all(abs(tenths[tenth] - fair) < 5 * fair**0.5 for tenth in range(5))
    assert abs(tenths[5] + at_once - fair) < 5 * fair**0.5
