"""A law: 500 agents or fewer never wait; more of them spread their taints over at most a minute, evenly, whatever they are called."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.taint_spread import MANY_AGENTS, SPREAD_SECONDS, delay_seconds

NAMES = {
    "numbered": [f"node-{number:05}" for number in range(5000)],
    "addresses": [f"ip-10-{number // 256}-{number % 256}-17.eu-central-1.compute.internal" for number in range(5000)],
    "random": [str(uuid.UUID(int=number * 2**64 + 7)) for number in range(5000)],
}


@given(st.text(), st.integers(0, MANY_AGENTS) | st.none())
def test_in_a_fleet_of_a_usual_or_unknown_size_nobody_waits(node: str, agents: int | None) -> None:
    assert delay_seconds(node, agents) == 0.0


@given(st.text(), st.integers(MANY_AGENTS + 1, 10**6), st.integers(MANY_AGENTS + 1, 10**6))
def test_in_a_large_fleet_each_node_has_a_moment_of_its_own_within_a_minute(node: str, agents: int, others: int) -> None:
    assert 0.0 <= delay_seconds(node, agents) < SPREAD_SECONDS == 60.0
    assert delay_seconds(node, agents) == delay_seconds(node, others)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [MANY_AGENTS + 1, 5000])
def test_the_moments_are_spread_evenly(kind: str, count: int) -> None:
    """Every ten seconds about a sixth of the fleet: within five standard deviations of a fair draw."""
    sixths = Counter(int(delay_seconds(name, count) // 10) for name in NAMES[kind][:count])
    fair = count / 6
    assert set(sixths) == set(range(6))
    assert all(abs(found - fair) < 5 * fair**0.5 for found in sixths.values())
