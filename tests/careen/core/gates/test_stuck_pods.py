"""The gate that refuses a reboot because of pods that have been terminating for longer than their grace period."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, PodView, Unknown
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.gates import asked
from careen.core.gates.question import Cost, When
from careen.core.gates.stuck_pods import stuck_pods
from careen.core.situation import Situation
from tests.careen.core.builders import NOW, a_daemon_pod, a_pod, a_policy, a_situation


def ending(seconds: float, **changes: Any) -> PodView:
    """Return a pod that should have ended `seconds` ago, with a grace period of 30 seconds."""
    return a_pod(
        **{
            "name": "stuck",
            "deletion_timestamp": NOW - timedelta(seconds=seconds),
            "deletion_grace_seconds": 30.0,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("pods", "code"),
    [
        pytest.param((a_pod(),), None, id="a running pod"),
        pytest.param((ending(-20),), None, id="within its grace period"),
        pytest.param((ending(59),), None, id="its kubelet is still tidying up"),
        pytest.param((ending(61),), Code.STUCK_POD, id="longer than its grace period"),
        pytest.param((ending(2 * 86400), ending(9, name="b")), Code.STUCK_POD, id="for two days"),
        pytest.param((a_daemon_pod(deletion_timestamp=NOW - timedelta(days=2)),), None, id="a DaemonSet's pod"),
        pytest.param((ending(61, phase="Failed"),), None, id="a pod that has finished"),
        pytest.param(Unknown("503"), Code.PODS_UNKNOWN, id="the pods are unknown"),
        pytest.param(NOT_ASKED, Code.PODS_UNKNOWN, id="the pods were not read"),
    ],
)
def test_the_gate_refuses_while_the_drain_would_wait_for_a_pod_that_does_not_end(pods: Any, code: Code | None) -> None:
    refusal = stuck_pods.ask(a_situation(pods=pods), When.READY)
    assert (refusal.code if refusal else None) == code


def test_the_sentence_says_since_when_and_which_finalizer_keeps_the_pod() -> None:
    pods = (ending(61, finalizers=("x.example/report", "y.example/z")), ending(3600, name="b"))
    refusal = stuck_pods.ask(a_situation(pods=pods), When.READY)
    assert refusal is not None
    assert refusal.sentence == (
        "these pods have not ended within their grace period: shop/b (terminating since 2026-03-04T10:59:30Z), "
        "shop/stuck (terminating since 2026-03-04T11:58:29Z; finalizer x.example/report, y.example/z)"
    )


def test_the_gate_goes_by_the_clock_of_the_api_server() -> None:
    ahead = a_situation(pods=(ending(61),), clock_skew_seconds=10.0)
    assert stuck_pods.ask(ahead, When.READY) is None


@pytest.mark.parametrize(("skip", "refuses"), [(0.0, True), (60.0, False)])
def test_a_drain_that_does_not_wait_for_such_pods_needs_no_gate(skip: float, refuses: bool) -> None:
    policy = a_policy(drain=DrainPolicy(skip_wait_for_delete_seconds=skip))
    situation: Situation = a_situation(pods=(ending(86400),), policy=policy)
    assert (stuck_pods.ask(situation, When.CLAIMED) is not None) is refuses


def test_the_gate_is_asked_before_the_cordon_and_by_the_next_node_only() -> None:
    assert stuck_pods in asked(When.READY, Cost.COSTLY)
    assert stuck_pods in asked(When.CLAIMED, Cost.COSTLY)
    assert stuck_pods not in asked(When.BEFORE_REBOOT)
