"""Tests the embedded API server with a real kubectl: the commands that people type at `careen demo --serve`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drydock.server.testing import RunningServer, server_in_thread
from tests import patience
from tests.architecture.source_tree import ROOT

pytestmark = [pytest.mark.kubectl, pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")]

Kubectl = Callable[..., str]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "web:1", env: [{name: MODE, value: fast}]}
      - {name: side, image: "side:1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: careen, namespace: default}
data: {period: 5s, old: "1"}
"""


@pytest.fixture
def kubectl(server: RunningServer, tmp_path: Path) -> Kubectl:
    config = server.write_kubeconfig(tmp_path / "kubeconfig")
    # A separate home: kubectl caches discovery by address, and ports are reused.
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}

    def run(*arguments: str, fails: bool = False, text: str = "") -> str:
        done = patience.run(["kubectl", *arguments], env=environment, input=text)
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


@pytest.fixture
def nodes(server: RunningServer) -> RunningServer:
    for name in ("n1", "n2"):
        server.seed(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0"},
                },
            }
        )
    return server


def running_pod(name: str, node: str, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web-uid", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [owner], **more},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "web:1"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0}],
        },
    }


def test_kubectl_get_nodes_prints_the_columns_name_status_roles_age_and_version(
    kubectl: Kubectl, nodes: RunningServer
) -> None:
    lines = [line.split() for line in kubectl("get", "nodes").splitlines()]
    assert lines[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [line[:3] for line in lines[1:]] == [["n1", "Ready", "<none>"], ["n2", "Ready", "<none>"]]


def test_kubectl_get_supports_wide_output_and_custom_columns(kubectl: Kubectl, nodes: RunningServer) -> None:
    nodes.seed(running_pod("web-a", "n1"))
    assert "n1" in kubectl("get", "pods", "-o", "wide").splitlines()[1].split()
    assert kubectl("get", "pods", "-o", "custom-columns=P:.metadata.name,N:.spec.nodeName", "--no-headers").split() == [
        "web-a",
        "n1",
    ]


def test_kubectl_get_with_watch_prints_a_change(kubectl: Kubectl, nodes: RunningServer, tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path)}
    with subprocess.Popen(
        ["kubectl", "get", "node", "n1", "--watch", "--no-headers"], env=environment, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        first = following.stdout.readline().split()[:2]
        kubectl("cordon", "n1")
        second = following.stdout.readline().split()[:2]
        following.kill()
    assert (first, second) == (["n1", "Ready"], ["n1", "Ready,SchedulingDisabled"])


def test_kubectl_sets_annotations_labels_and_taints_of_a_node(kubectl: Kubectl, nodes: RunningServer) -> None:
    kubectl("annotate", "node", "n1", "careen.dev/hold=maintenance until Monday")
    kubectl("label", "node", "n1", "zone=a")
    kubectl("taint", "node", "n1", "dedicated=db:NoSchedule")
    node = nodes.get("nodes", "n1") or {}
    assert node["metadata"]["annotations"] == {"careen.dev/hold": "maintenance until Monday"}
    assert (node["metadata"]["labels"]["zone"], node["spec"]["taints"]) == (
        "a",
        [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}],
    )
    kubectl("taint", "node", "n1", "dedicated-")
    kubectl("annotate", "node", "n1", "careen.dev/hold-")
    node = nodes.get("nodes", "n1") or {}
    assert (node["spec"].get("taints"), node["metadata"].get("annotations")) == (None, None)


def test_kubectl_cordons_and_uncordons_a_node(kubectl: Kubectl, nodes: RunningServer) -> None:
    kubectl("cordon", "n1")
    assert (nodes.get("nodes", "n1") or {})["spec"]["unschedulable"] is True
    kubectl("uncordon", "n1")
    assert not (nodes.get("nodes", "n1") or {})["spec"].get("unschedulable")


def test_kubectl_apply_creates_an_object_and_changes_only_the_fields_of_the_file(
    kubectl: Kubectl, server: RunningServer
) -> None:
    """kubectl computes the patch, and leaves the validation to the server if discovery says that PATCH accepts
    fieldValidation."""
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    changed = (
        DEPLOYMENT.replace("web:1", "web:2")
        .replace("MODE", "SPEED")
        .replace('old: "1"', 'new: "1"')
        .replace('      - {name: side, image: "side:1"}\n', "")
    )
    assert "configured" in kubectl("apply", "-f", "-", text=changed)
    containers = (server.get("deployments", "web") or {})["spec"]["template"]["spec"]["containers"]
    assert containers == [{"name": "main", "image": "web:2", "env": [{"name": "SPEED", "value": "fast"}]}]
    assert (server.get("configmaps", "careen") or {})["data"] == {"period": "5s", "new": "1"}
    assert "unchanged" in kubectl("apply", "-f", "-", text=changed)


def test_kubectl_drain_cordons_the_node_and_evicts_pods_under_their_budgets(
    kubectl: Kubectl, nodes: RunningServer
) -> None:
    """kubectl sends its evictions as protobuf, with the delete options inside."""
    nodes.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "uid": "web-uid"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            },
        }
    )
    nodes.seed(running_pod("web-a", "n1"), running_pod("web-b", "n1"), running_pod("web-c", "n2"))
    output = kubectl("drain", "n1", "--grace-period=3")
    assert "node/n1 drained" in output
    assert [item.key[1] for item in nodes.store.items(("", "pods"))] == ["web-c"]
    marked = [
        c.after.content["metadata"]["deletionGracePeriodSeconds"]
        for c in nodes.store.journal
        if c.storage == ("", "pods") and c.after is not None and "deletionTimestamp" in c.after.content["metadata"]
    ]
    assert marked == [3, 3]


def test_a_server_side_dry_run_of_kubectl_drain_evicts_nothing(kubectl: Kubectl, nodes: RunningServer) -> None:
    nodes.seed(running_pod("web-a", "n1"))
    before = nodes.store.version
    kubectl("drain", "n1", "--force", "--dry-run=server")
    assert nodes.store.version == before


def test_kubectl_drain_reports_a_blocking_budget_and_gives_up(kubectl: Kubectl, nodes: RunningServer) -> None:
    nodes.seed(
        running_pod("web-a", "n1"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1},
        },
    )
    assert "would violate the pod's disruption budget" in kubectl("drain", "n1", "--force", "--timeout=2s", fails=True)


def test_kubectl_delete_removes_objects_and_namespaces(kubectl: Kubectl, nodes: RunningServer) -> None:
    kubectl("create", "namespace", "spare")
    kubectl("create", "configmap", "settings", "-n", "spare", "--from-literal=a=b")
    kubectl("delete", "node", "n2")
    kubectl("delete", "namespace", "spare")
    assert (
        nodes.get("nodes", "n2"),
        nodes.get("namespaces", "spare"),
        nodes.get("configmaps", "settings", "spare"),
    ) == (None, None, None)


def test_kubectl_scale_and_kubectl_auth_can_i_are_supported(kubectl: Kubectl, server: RunningServer) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    kubectl("scale", "deployment", "web", "--replicas=5")
    assert (server.get("deployments", "web") or {})["spec"]["replicas"] == 5
    assert kubectl("auth", "can-i", "patch", "configmaps").strip() == "yes"


def test_kubectl_delete_waits_for_the_kubelet(tmp_path: Path) -> None:
    with server_in_thread(pod_stop_seconds=0.5) as server:
        server.seed(running_pod("web-a", "n1"))
        environment = {
            **os.environ,
            "KUBECONFIG": str(server.write_kubeconfig(tmp_path / "kubeconfig")),
            "HOME": str(tmp_path),
        }
        done = patience.run(["kubectl", "delete", "pod", "web-a"], env=environment)
        assert (done.returncode, server.get("pods", "web-a")) == (0, None)


def test_the_last_command_of_an_uninstallation_succeeds_although_the_daemon_set_is_gone(
    server: RunningServer, kubectl: Kubectl
) -> None:
    """docs/uninstall.md deletes the DaemonSet first, so `kubectl delete -k` finds less than the manifests have."""
    page = (ROOT / "docs" / "uninstall.md").read_text()
    commands = [line.partition("#")[0].split() for line in page.split("```")[1].splitlines()[1:]]
    program, *words = commands[-1]
    assert program == "kubectl"
    kubectl("create", "namespace", "careen")
    said = kubectl(*(str(ROOT / word) if word == "manifests" else word for word in words))
    assert 'namespace "careen" deleted' in said
    assert server.get("namespaces", "careen") is None
