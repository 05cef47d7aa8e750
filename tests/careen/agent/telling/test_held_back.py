"""If a gate (a check that can forbid a reboot) delays the reboot of a node for too long, the node's agent reports the
delay once, and again each week. A restart of the agent does not repeat the report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from careen.agent.telling.held_back import HeldBack, due
from careen.core.decision import Refusal
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code

SINCE = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
POD = Refusal(gate="blocking-pods", code=Code.BLOCKING_POD, sentence="shop/db blocks", since=SINCE)


def look(now: datetime, *refusals: Refusal, phase: Phase | None = Phase.WAITING, **given: Any) -> HeldBack | None:
    return due("n1", refusals or (POD,), phase, now, **{"after_seconds": 86400.0, **given})


def test_the_report_of_a_delayed_node_shows_the_reason_and_the_start_of_the_delay() -> None:
    found = look(SINCE + DAY)
    assert found is not None
    assert found.message.sentence == ("Node n1 has been held back for 1 d, since 2026-03-04 12:00 UTC: shop/db blocks")
    assert (found.message.reason, found.message.seconds, found.is_cluster_wide) == ("shop/db blocks", 86400.0, False)


@pytest.mark.parametrize(
    ("after", "is_due"),
    [
        (timedelta(), False),
        (DAY - timedelta(seconds=1), False),
        (DAY, True),
        (DAY + timedelta(minutes=45), True),
        (DAY + timedelta(minutes=46), False),
        (DAY + timedelta(days=7) - timedelta(seconds=1), False),
        (DAY + timedelta(days=7), True),
        (DAY + timedelta(days=14, minutes=1), True),
        (-DAY, False),
    ],
)
def test_a_delay_is_reported_after_the_limit_and_again_each_week(after: timedelta, is_due: bool) -> None:
    assert (look(SINCE + after) is not None) is is_due


def test_the_event_about_a_delay_has_the_same_name_after_a_restart() -> None:
    def once(after: timedelta, **changes: Any) -> str:
        from dataclasses import replace

        found = look(SINCE + after, replace(POD, **changes))
        assert found is not None
        return found.once

    assert once(DAY) == once(DAY + timedelta(minutes=40), sentence="shop/db-1 blocks")
    names = {once(DAY), once(DAY * 8), once(DAY, since=SINCE - timedelta(minutes=30)), once(DAY, code=Code.ALERT)}
    assert len(names) == 4


@pytest.mark.parametrize(
    "code",
    [
        Code.OUTSIDE_WINDOW,
        Code.MINIMUM_INTERVAL,
        Code.CLUSTER_INTERVAL,
        Code.LIMIT_REACHED,
        Code.ZONE_AT_WORK,
        Code.HALTED,
    ],
)
def test_a_delay_required_by_the_settings_is_not_reported(code: Code) -> None:
    planned = Refusal(gate="a", code=code, sentence="later", since=SINCE)
    assert look(SINCE + DAY, planned) is None
    found = look(SINCE + DAY, planned, POD)
    assert found is not None
    assert found.message.reason == "shop/db blocks"


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.IDLE, Phase.FAILED, None])
def test_only_a_waiting_node_is_reported_as_delayed(phase: Phase | None) -> None:
    assert look(SINCE + DAY, phase=phase) is None


def test_no_delay_is_reported_if_the_limit_is_zero_or_the_refusal_has_no_start_time() -> None:
    assert look(SINCE + DAY, after_seconds=0.0) is None
    assert look(SINCE + DAY, Refusal(gate="a", code=Code.ALERT, sentence="x")) is None


def test_the_event_about_a_cluster_wide_refusal_has_the_same_name_on_all_nodes() -> None:
    def told(node: str, since: datetime) -> HeldBack | None:
        paused = Refusal(gate="hold", code=Code.PAUSED, sentence="paused: maintenance", since=since)
        return due(node, (paused,), Phase.WAITING, SINCE + DAY, after_seconds=86400.0)

    one, other = told("n1", SINCE), told("n2", SINCE - timedelta(seconds=20))
    assert one is not None
    assert other is not None
    assert one.is_cluster_wide
    assert one.once == other.once


@pytest.mark.parametrize(
    ("code", "is_of_cluster", "is_told_once"),
    [
        pytest.param(Code.HEALTH_QUERY, True, True, id="a health query that is the same for every node"),
        pytest.param(Code.HEALTH_QUERY, False, False, id="a health query about this node"),
        pytest.param(Code.BLOCKING_POD, True, True, id="a pod that forbids every reboot"),
        pytest.param(Code.BLOCKING_POD, False, False, id="a pod that forbids this node's reboot"),
        pytest.param(Code.PODS_UNKNOWN, False, False, id="the pods of this node cannot be read"),
        pytest.param(Code.ALERT, False, True, id="an alert, which always affects the whole cluster"),
    ],
)
def test_a_refusal_is_reported_only_once_if_it_affects_the_whole_cluster(
    code: Code, is_of_cluster: bool, is_told_once: bool
) -> None:
    def once(node: str, since: datetime) -> str:
        refusal = Refusal(gate="gate", code=code, sentence="no", since=since, is_of_cluster=is_of_cluster)
        found = due(node, (refusal,), Phase.WAITING, SINCE + DAY, after_seconds=86400.0)
        assert found is not None
        assert found.is_cluster_wide is is_told_once
        return found.once

    assert (once("n1", SINCE) == once("n2", SINCE - timedelta(minutes=2))) is is_told_once
