"""Pods that forbid interruption."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates import blocking_pods
from careen.core.gates.question import When
from tests.careen.core.builders import a_pod, a_policy, a_situation

POLICY = a_policy(blocking_pod_selectors=(Selector.parse("app=db"), Selector.parse("critical")))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((), None, id="no pods"),
        pytest.param((a_pod(labels={"app": "web"}),), None, id="no match"),
        pytest.param((a_pod(labels={"app": "db"}),), Code.BLOCKING_POD, id="the first selector"),
        pytest.param((a_pod(labels={"critical": ""}),), Code.BLOCKING_POD, id="the second selector"),
        pytest.param((a_pod(labels={"app": "db"}, phase="Succeeded"),), None, id="finished"),
        pytest.param((a_pod(labels={"app": "db"}, phase="Pending"),), Code.BLOCKING_POD, id="pending"),
        pytest.param(Unknown("503"), Code.PODS_UNKNOWN, id="the list failed"),
        pytest.param(NOT_ASKED, Code.PODS_UNKNOWN, id="nobody listed them"),
    ],
)
def test_a_matching_pod_on_the_node_refuses(pods: Any, expected: Code | None) -> None:
    refused = blocking_pods.ask(a_situation(policy=POLICY, pods=pods), When.READY)
    assert (refused.code if refused else None) is expected


def test_without_selectors_no_pods_are_listed() -> None:
    assert blocking_pods.needs(a_policy()) == frozenset()
    assert blocking_pods.ask(a_situation(pods=Unknown("503")), When.READY) is None


def test_the_refusal_names_the_pod_and_the_selector() -> None:
    pods = (a_pod("b", labels={"app": "db", "critical": ""}), a_pod("a", labels={"app": "db"}))
    refused = blocking_pods.ask(a_situation(policy=POLICY, pods=pods), When.READY)
    assert refused is not None
    assert refused.sentence == "shop/a and 1 more matches app=db"
