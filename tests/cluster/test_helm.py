"""Tests the chart on a real API server: installed, upgraded, rolled back and removed while the lock has a claim."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.helm import CHART, PROGRAM, helm
from tests.cluster.harness.api import ApiError
from tests.cluster.harness.cluster import LOCK_ANNOTATION
from tests.cluster.harness.guards import keep_parameters_followed
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster

NAMESPACE, RELEASE, NAME = "reboots", "our", "our-careen"
DAEMONSET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{NAME}"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
CLAIM = '{"maxOwners":1,"locks":[{"nodeID":"n00","created":"2026-03-04T12:00:00Z","TTL":0}]}'
# Helm 3 has only the three-way merge. Helm 4 uses server-side apply for releases that it installs.
IS_HELM_3 = any(PROGRAM.parent.glob(".helm-v3*"))
WAYS = ["three-way"] if IS_HELM_3 else ["three-way", "server-side"]


class Release:
    """An installed release of the chart in the test's cluster."""

    def __init__(self, story: Story, home: Path, way: str) -> None:
        self.story = story
        self.home = home
        self._way = [] if IS_HELM_3 else [f"--server-side={str(way == 'server-side').lower()}"]

    def helm(self, command: str, *words: str) -> str:
        way = self._way if command in ("install", "upgrade", "rollback") else []
        kubeconfig = self.story.plane.folder / "admin.kubeconfig"
        done = helm(self.home, command, RELEASE, *words, *way, "--namespace", NAMESPACE, kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def upgrade(self, *words: str) -> None:
        self.helm("upgrade", str(CHART), *words)

    def claim(self) -> None:
        """Take a claim as an agent does: with a merge patch of the lock annotation."""
        self.story.admin.patch(DAEMONSET, {"metadata": {"annotations": {LOCK_ANNOTATION: CLAIM}}})

    @property
    def lock(self) -> str | None:
        annotations = self.daemonset["metadata"].get("annotations", {})
        found: str | None = annotations.get(LOCK_ANNOTATION)
        return found

    @property
    def daemonset(self) -> dict[str, Any]:
        return self.story.admin.get(DAEMONSET)

    @property
    def settings(self) -> str:
        text: str = self.story.admin.get(CONFIG_MAP)["data"]["config.yaml"]
        return text


@contextlib.contextmanager
def installed(story: Story, home: Path, way: str, *words: str) -> Iterator[Release]:
    release = Release(story, home, way)
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    release.helm("install", str(CHART), *words)
    try:
        yield release
    finally:
        release.helm("uninstall")
        story.wait_for("the DaemonSet is gone", lambda: story.admin.find(DAEMONSET) is None)


@pytest.mark.parametrize("way", WAYS)
def test_a_claim_in_the_lock_survives_upgrades_and_a_rollback(story: Story, tmp_path: Path, way: str) -> None:
    hosts = story.nodes_without_agents(2)
    with installed(story, tmp_path, way) as release:
        story.wait_for(
            "the DaemonSet has a ready pod on each node",
            lambda: release.daemonset.get("status", {}).get("numberReady") == len(hosts),
        )
        release.claim()
        release.upgrade("--set", "configuration.concurrency=2")
        assert release.lock == CLAIM
        assert 'concurrency: "2"' in release.settings
        uid = release.daemonset["metadata"]["uid"]
        release.upgrade("--set", "podLabels.team=nodes,dsAnnotations.owner=me,image.tag=2")
        assert release.lock == CLAIM
        assert release.daemonset["metadata"]["annotations"]["owner"] == "me"
        assert release.daemonset["spec"]["template"]["metadata"]["labels"]["team"] == "nodes"
        release.helm("rollback", "1")
        assert release.lock == CLAIM
        assert "owner" not in release.daemonset["metadata"]["annotations"]
        assert 'concurrency: "2"' not in release.settings
        assert release.daemonset["metadata"]["uid"] == uid


@pytest.mark.parametrize("way", WAYS)
def test_helm_uninstall_removes_all_objects_of_the_chart(story: Story, tmp_path: Path, way: str) -> None:
    keep_parameters_followed(story)
    words = (
        "components.admission=true,components.network=true,service.create=true,configuration.notifyUrl=discord://t@1"
    )
    with installed(story, tmp_path, way, "--set", words):
        assert len(ours(story)) >= 15
    story.wait_for("nothing is left", lambda: not ours(story))


def ours(story: Story) -> list[str]:
    """Return kind and name of every object that has the label of the release."""
    kinds = (
        *(
            "/api/v1/serviceaccounts",
            "/api/v1/services",
            "/api/v1/secrets",
            "/api/v1/configmaps",
            "/apis/apps/v1/daemonsets",
        ),
        *(
            f"/apis/rbac.authorization.k8s.io/v1/{kind}"
            for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
        ),
        "/apis/networking.k8s.io/v1/networkpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    )
    return [
        f"{kind} {each['metadata']['name']}"
        for kind in kinds
        for each in story.admin.list(kind)
        if each["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == RELEASE
    ]


@pytest.mark.parametrize("component", ["", "signal", "privileged"])
def test_the_api_server_accepts_the_chart_with_every_setting(story: Story, tmp_path: Path, component: str) -> None:
    """The API server would answer an unknown field with a warning, and an invalid value with an error."""
    words = ["--set", f"components.{component}=true"] if component else []
    with installed(story, tmp_path, WAYS[-1], *words) as release:
        assert release.daemonset["metadata"]["name"] == NAME
    with pytest.raises(ApiError, match="404"):
        story.admin.get(DAEMONSET)


@pytest.mark.parametrize("way", WAYS)
def test_helm_adopts_a_kustomize_installation_and_keeps_the_lock(story: Story, tmp_path: Path, way: str) -> None:
    story.write_lock(CLAIM)
    before = story.admin.get(story.identity.path)["metadata"]["uid"]
    kubeconfig = story.plane.folder / "admin.kubeconfig"
    words = ["--namespace", "careen"] + ([] if IS_HELM_3 else [f"--server-side={str(way == 'server-side').lower()}"])
    words += ["--force-conflicts"] if way == "server-side" else []
    done = helm(tmp_path, "install", "careen", str(CHART), "--take-ownership", *words, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    try:
        after = story.admin.get(story.identity.path)["metadata"]
        assert (after["uid"], after["annotations"][LOCK_ANNOTATION]) == (before, CLAIM)
        assert after["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    finally:
        helm(tmp_path, "uninstall", "careen", "--namespace", "careen", kubeconfig=kubeconfig)


def test_a_forced_helm_upgrade_removes_the_lock(story: Story, tmp_path: Path) -> None:
    """`--force` acts like `kubectl replace`. test_gitops.py shows how agents restore the lock afterwards."""
    with installed(story, tmp_path, "three-way") as release:
        release.claim()
        uid = release.daemonset["metadata"]["uid"]
        release.upgrade("--set", "configuration.concurrency=2", "--force" if IS_HELM_3 else "--force-replace")
        assert release.lock is None
        assert release.daemonset["metadata"]["uid"] == uid, "its pods continue"
