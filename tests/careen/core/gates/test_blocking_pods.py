"""The gate for pods that block the reboot of the node on which they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates.blocking_pods import blocking_pods
from careen.core.gates.question import When
from tests.careen.core.builders import a_pod, a_policy, a_situation

POLICY = a_policy(blocking_pod_selectors=(Selector.parse("app=db"), Selector.parse("critical")))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((), None, id="no pod runs on the node"),
        pytest.param((a_pod(labels={"app": "web"}),), None, id="no pod matches a selector"),
        pytest.param((a_pod(labels={"app": "db"}),), Code.BLOCKING_POD, id="a pod matches the first selector"),
        pytest.param((a_pod(labels={"critical": ""}),), Code.BLOCKING_POD, id="a pod matches the second selector"),
        pytest.param((a_pod(labels={"app": "db"}, phase="Succeeded"),), None, id="the matching pod has finished"),
        pytest.param(
            (a_pod(labels={"app": "db"}, phase="Pending"),), Code.BLOCKING_POD, id="the matching pod is pending"
        ),
        pytest.param(Unknown("503"), Code.PODS_UNKNOWN, id="the request for the list of pods failed"),
        pytest.param(NOT_ASKED, Code.PODS_UNKNOWN, id="the pods were not listed"),
    ],
)
def test_a_matching_pod_on_the_node_refuses_the_reboot(pods: Any, expected: Code | None) -> None:
    refused = blocking_pods.ask(a_situation(policy=POLICY, pods=pods), When.READY)
    assert (refused.code if refused else None) is expected


def test_without_a_configured_selector_the_gate_needs_no_list_of_pods() -> None:
    assert blocking_pods.needs(a_policy()) == frozenset()
    assert blocking_pods.ask(a_situation(pods=Unknown("503")), When.READY) is None


def test_the_refusal_shows_the_pod_and_the_selector() -> None:
    pods = (a_pod("b", labels={"app": "db", "critical": ""}), a_pod("a", labels={"app": "db"}))
    refused = blocking_pods.ask(a_situation(policy=POLICY, pods=pods), When.READY)
    assert refused is not None
    assert refused.sentence == "shop/a and 1 more matches app=db"


BACKUP = BlockingPods(
    name="backup", selector=Selector.parse("app=backup"), namespaces=("shop", "ops"), longest_seconds=3600
)


@pytest.mark.parametrize(
    ("namespace", "labels", "sentence", "longest"),
    [
        ("shop", {"app": "backup"}, "shop/p matches app=backup (backup)", 3600),
        ("other", {"app": "backup"}, None, 0),
        ("shop", {"app": "web"}, None, 0),
        ("other", {"app": "db"}, "other/p matches app=db", 0),
        ("ops", {"app": "backup", "critical": ""}, "ops/p matches app=backup (backup)", 3600),
    ],
)
def test_a_blocking_pod_refuses_only_in_the_configured_namespaces(
    namespace: str, labels: dict[str, str], sentence: str | None, longest: float
) -> None:
    policy = replace(POLICY, blocking_pods=(BACKUP, replace(BACKUP, name="all", scope=BlockingScope.CLUSTER)))
    pods = (a_pod("p", namespace=namespace, labels=labels),)
    refused = blocking_pods.ask(a_situation(policy=policy, pods=pods), When.READY)
    assert (refused.sentence if refused else None) == sentence
    assert (refused.longest_seconds if refused else 0) == longest


def test_a_cluster_wide_selector_needs_no_list_of_the_nodes_pods() -> None:
    policy = a_policy(blocking_pods=(replace(BACKUP, scope=BlockingScope.CLUSTER),))
    assert blocking_pods.needs(policy) == frozenset()
    assert blocking_pods.needs(a_policy(blocking_pods=(BACKUP,))) == {Evidence.PODS}
