"""The gate that refuses a reboot because of pods that their owner, and not a scheduler, binds to this node."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BoundPods, DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.bound_pods import bound_pods
from careen.core.gates.question import When
from tests.careen.core.builders import a_daemon_pod, a_pod, a_policy, a_situation, an_owner

HERE, ELSEWHERE, FREE = an_owner(bound_to="n1"), an_owner(bound_to="n2"), an_owner()
BOUND, PLACED, UNTOLD = a_pod(came_bound=True), a_pod(came_bound=False), a_pod()


@pytest.mark.parametrize(
    ("pods", "owners", "expected"),
    [
        pytest.param((), (), None, id="no pod runs on the node"),
        pytest.param((BOUND,), (HERE,), Code.BOUND_POD, id="the owner's template names this node"),
        pytest.param(
            (UNTOLD,),
            (HERE,),
            Code.BOUND_POD,
            id="it is unknown who placed the pod, but its template names the node",
        ),
        pytest.param(
            (PLACED,),
            (HERE,),
            None,
            id="a pod that a scheduler placed before its template changed",
        ),
        pytest.param((BOUND,), (FREE,), None, id="a pod bound by hand, whose template names no node"),
        pytest.param((BOUND,), (ELSEWHERE,), None, id="the owner's template names another node"),
        pytest.param((BOUND,), (), None, id="an owner of a kind that careen cannot read"),
        pytest.param(
            (a_pod(owner_kind="", owner_name="", owner_uid="", came_bound=True),),
            (),
            None,
            id="a pod that no controller recreates",
        ),
        pytest.param((a_daemon_pod(came_bound=True),), (), None, id="a DaemonSet's pod, which is never evicted"),
        pytest.param((a_pod(came_bound=True, phase="Succeeded"),), (HERE,), None, id="a finished pod"),
        pytest.param(Unknown("503"), (HERE,), Code.PODS_UNKNOWN, id="the pods cannot be listed"),
        pytest.param((BOUND,), Unknown("503"), Code.OWNERS_UNKNOWN, id="the owners cannot be read"),
        pytest.param((PLACED,), Unknown("503"), None, id="the owners of pods that a scheduler placed are not read"),
        pytest.param((BOUND,), NOT_ASKED, Code.OWNERS_UNKNOWN, id="the owners were not read"),
    ],
)
def test_the_gate_refuses_the_reboot_if_the_owner_of_a_pod_binds_the_pod_to_the_node(
    pods: Any, owners: Any, expected: Code | None
) -> None:
    refused = bound_pods.ask(a_situation(pods=pods, owners=owners, evictability={}), When.READY)
    assert (refused.code if refused else None) is expected


def test_the_refusal_names_the_pods_their_owners_and_the_setting_that_lets_such_pods_stay() -> None:
    refused = bound_pods.ask(
        a_situation(pods=tuple(a_pod(f"web-{n}", came_bound=True) for n in range(5)), owners=(HERE,)), When.READY
    )
    assert refused is not None
    assert refused.sentence == (
        "spec.nodeName binds these pods to this node, so they return after each eviction: shop/web-0 "
        "(ReplicaSet shop/web), "
        "shop/web-1 (ReplicaSet shop/web), shop/web-2 (ReplicaSet shop/web) and 2 more; "
        "--pods-bound-to-node=stay leaves such pods on the node"
    )


def test_the_gate_reads_no_pods_if_the_settings_leave_node_bound_pods_on_the_node() -> None:
    """A node-bound pod is a pod whose owner names the node in spec.nodeName of its pod template. With
    --pods-bound-to-node=stay, the gate needs no facts and refuses nothing."""
    policy = a_policy(drain=DrainPolicy(bound_pods=BoundPods.STAY))
    assert bound_pods.needs(policy) == frozenset()
    assert bound_pods.needs(a_policy()) == {Evidence.PODS, Evidence.OWNERS}
    assert bound_pods.ask(a_situation(policy=policy, pods=(BOUND,), owners=(HERE,)), When.READY) is None
