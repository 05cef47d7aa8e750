"""The gate for the minimum time that must pass between the reboots of any two nodes of the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates.cluster_interval import cluster_interval
from careen.core.gates.question import When
from careen.core.lock.content import Garbage, LockContent
from tests.careen.core.builders import NOW, a_node, a_policy, a_situation, an_entry, held

HOURLY = replace(a_policy(concurrency=3), cluster_interval_seconds=3600)
WANTED = a_node(annotations={keys.REBOOT_NOW: "until=2026-03-04T13:00:00Z"})


def ago(seconds: float) -> str:
    return rfc3339(NOW - timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("node", "released_at", "sentence"),
    [
        pytest.param(a_node(), "", None, id="no node has rebooted"),
        pytest.param(a_node(), ago(3600), None, id="the interval has just ended"),
        pytest.param(
            a_node(),
            ago(3599),
            "the last reboot in the cluster ended at 2026-03-04T11:00:01Z; the next reboot may begin at "
            "2026-03-04T12:00:01Z",
            id="the interval ends in a second",
        ),
        pytest.param(
            a_node(),
            ago(-200),
            "the last reboot in the cluster ended",
            id="the last reboot seems to be 200 seconds in the future",
        ),
        pytest.param(a_node(), ago(-400), None, id="a reboot in the far future is ignored"),
        pytest.param(a_node(), "tomorrow", None, id="the time of the last reboot is invalid"),
        pytest.param(WANTED, ago(60), None, id="a person waives the interval with reboot-now"),
    ],
)
def test_a_node_waits_until_the_interval_since_the_clusters_last_reboot_is_over(
    node: NodeView, released_at: str, sentence: str | None
) -> None:
    situation = a_situation(node, HOURLY, lock=LockContent(released_at=released_at))
    refused = cluster_interval.ask(situation, When.READY)
    assert (refused is None) is (sentence is None)
    if refused:
        assert (refused.code, refused.is_of_cluster) == (Code.CLUSTER_INTERVAL, True)
        assert refused.sentence.startswith(sentence or "")


@pytest.mark.parametrize(
    ("holders", "when", "is_refused"),
    [
        ([], When.READY, False),
        (["n2"], When.READY, True),
        (["n1"], When.CLAIMED, False),
        (["n1", "n2"], When.CLAIMED, False),
        (["n2", "n1"], When.CLAIMED, True),
    ],
)
def test_with_an_interval_no_node_reboots_while_another_node_holds_a_claim(
    holders: list[str], when: When, is_refused: bool
) -> None:
    refused = cluster_interval.ask(a_situation(a_node(), HOURLY, lock=held(*map(an_entry, holders))), when)
    assert (refused is not None) is is_refused
    if refused:
        assert refused.sentence == ("n2 holds a claim and goes first; if that node reboots, 1h must pass afterwards")


@pytest.mark.parametrize("content", [LockContent(released_at=ago(1)), held(an_entry("n2")), Garbage("x")])
def test_if_no_interval_is_set_the_interval_gate_allows_every_reboot(content: LockContent | Garbage) -> None:
    assert cluster_interval.ask(a_situation(policy=a_policy(concurrency=3), lock=content), When.READY) is None


def test_the_interval_gate_ignores_an_unreadable_lock() -> None:
    assert cluster_interval.ask(a_situation(policy=HOURLY, lock=Garbage("x")), When.READY) is None
