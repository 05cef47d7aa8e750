"""Tests the optional components on real nodes, and a second apply of the manifests."""

from __future__ import annotations

import pytest

from tests.cluster.harness.api import Object
from tests.nodes.harness.story import Story

pytestmark = pytest.mark.cluster


def kind_of_prometheus_operator(kind: str) -> Object:
    """Build a CustomResourceDefinition of the Prometheus operator that accepts any object, because the tests only check
    that the object exists.
    """
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_three_nodes_reboot_with_all_components_and_a_second_apply_changes_nothing(story: Story) -> None:
    for kind in ("PodMonitor", "PrometheusRule"):
        if not story.lab.plane.admin.find(
            definition
            := f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.lower()}s.monitoring.coreos.com"
        ):
            story.create(kind_of_prometheus_operator(kind))
        story.wait_for(
            f"{kind} is known", lambda: "Established" in str(story.lab.plane.admin.get(definition).get("status"))
        )
    story.workloads()
    components = ("signal", "admission", "alerts", "network")
    story.install(*components)
    said = story.apply(*components)
    assert [line for line in said.splitlines() if not line.endswith(" unchanged")] == []
    story.want_reboot()
    story.finishes()
    story.judge()
