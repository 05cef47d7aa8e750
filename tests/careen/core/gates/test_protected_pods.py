"""The gate for pods that ask autoscalers not to disturb them."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates.protected_pods import protected_pods
from careen.core.gates.question import When
from tests.careen.core.builders import a_daemon_pod, a_pod, a_policy, a_situation

UNSAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
BUSY = {"karpenter.sh/do-not-disrupt": "true"}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((), None, id="no pod"),
        pytest.param((a_pod(),), None, id="a pod without annotations"),
        pytest.param((a_pod(annotations=UNSAFE),), Code.PROTECTED_POD, id="cluster autoscaler"),
        pytest.param((a_pod(annotations=BUSY),), Code.PROTECTED_POD, id="Karpenter"),
        pytest.param((a_pod(annotations=BUSY, phase="Pending"),), Code.PROTECTED_POD, id="a pod that starts"),
        pytest.param(
            (a_pod(annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}),), None, id="the opposite"
        ),
        pytest.param((a_pod(annotations={"karpenter.sh/do-not-disrupt": "1h"}),), None, id="another value"),
        pytest.param((a_pod(annotations=BUSY, phase="Succeeded"),), None, id="a finished pod"),
        pytest.param((a_daemon_pod(annotations=BUSY),), None, id="a DaemonSet's pod: each node has one"),
        pytest.param((a_pod(annotations=BUSY, is_mirror=True),), None, id="a static pod"),
        pytest.param(Unknown("503"), Code.PODS_UNKNOWN, id="the pods cannot be listed"),
        pytest.param(NOT_ASKED, Code.PODS_UNKNOWN, id="the pods were not listed"),
    ],
)
@pytest.mark.parametrize("when", [When.READY, When.CLAIMED])
def test_a_pod_that_asks_not_to_be_disturbed_refuses_the_reboot_of_its_node(
    pods: Any, expected: Code | None, when: When
) -> None:
    refused = protected_pods.ask(a_situation(pods=pods), when)
    assert (refused.code if refused else None) is expected


def test_a_pod_that_the_drain_leaves_to_the_reboot_is_disturbed_too() -> None:
    policy = a_policy(drain=DrainPolicy(selector=Selector.parse("app=web")))
    refused = protected_pods.ask(a_situation(policy=policy, pods=(a_pod(labels={}, annotations=BUSY),)), When.READY)
    assert refused is not None


def test_the_refusal_names_pods_and_annotations_and_alerts_after_a_day() -> None:
    refused = protected_pods.ask(
        a_situation(pods=(a_pod("b", annotations=UNSAFE), a_pod("a", annotations=BUSY))), When.READY
    )
    assert refused is not None
    assert refused.sentence == (
        "these pods ask not to be disturbed: shop/a (karpenter.sh/do-not-disrupt=true), shop/b "
        "(cluster-autoscaler.kubernetes.io/safe-to-evict=false)"
    )
    assert (refused.longest_seconds, refused.is_of_cluster) == (86400, False)


def test_the_gate_can_be_switched_off_and_is_not_asked_after_the_drain() -> None:
    policy = a_policy(protects_pods=False)
    assert protected_pods.needs(policy) == frozenset()
    assert protected_pods.needs(a_policy()) == {Evidence.PODS}
    assert protected_pods.ask(a_situation(policy=policy, pods=(a_pod(annotations=BUSY),)), When.READY) is None
    assert When.BEFORE_REBOOT not in protected_pods.when
