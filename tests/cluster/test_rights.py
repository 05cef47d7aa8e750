"""Tests that agents have the rights of manifests/rbac.yaml, and report missing rights when they start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.cluster import manifest_files
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/careen"


def test_an_agent_reports_every_missing_right_when_it_starts(story: Story) -> None:
    role = story.admin.get(ROLE)
    fewer: list[dict[str, Any]] = [
        rule for rule in role["rules"] if rule["resources"] not in (["pods/eviction"], ["poddisruptionbudgets"])
    ]
    assert len(fewer) == len(role["rules"]) - 2
    story.admin.patch(ROLE, {"rules": fewer})
    try:
        (host,) = story.nodes_without_agents(1)
        host.agent_wanted = True
        story.wait_for(
            "it names them", lambda: "pods/eviction" in said(host.log) and "poddisruptionbudgets" in said(host.log)
        )
        assert "create" in said(host.log)
    finally:
        for file in manifest_files():
            story.apply_file(file)


def test_the_rights_of_the_manifests_suffice_for_a_reboot(story: Story) -> None:
    (host,) = story.nodes(1)
    story.need_reboot([host])
    story.finishes([host])
    assert story.forbidden() == []
    assert "missing" not in said(host.log)


def said(log: Any) -> str:
    return str(log.read_text()) if log.exists() else ""
