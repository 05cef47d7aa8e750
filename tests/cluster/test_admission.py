"""Tests the admission component of manifests/ with running agents: under another name and namespace, and during a
roll-out.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.harness.cluster import CAREEN
from tests.cluster.harness.guards import annotated, keep_parameters_followed, policies_on
from tests.cluster.harness.machines.control_plane import REPOSITORY
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import budget, deployment
from tests.patience import run

pytestmark = pytest.mark.cluster


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_policies_follow_the_namespace_and_name_prefix_of_a_kustomization(story: Story, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "manifests", tmp_path / "manifests")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: reboots\nnamePrefix: our-\n"
        "resources: [../manifests]\ncomponents: [../manifests/admission]\n"
    )
    built = run(["kubectl", "kustomize", str(tmp_path / "own")])
    assert built.returncode == 0, built.stderr
    keep_parameters_followed(story)
    kubeconfig = str(story.plane.folder / "admin.kubeconfig")
    (tmp_path / "all.yaml").write_text(built.stdout)
    try:
        done = run(["kubectl", "--kubeconfig", kubeconfig, "apply", "-f", str(tmp_path / "all.yaml")])
        assert done.returncode == 0, done.stderr
        story.nodes_without_agents(1)
        # As docs/operations.md says: the way to see that they are in force.
        probe = ["annotate", "node", "n00", "x=y", "--dry-run=server", "--as=system:serviceaccount:reboots:our-careen"]
        story.wait_for(
            "it is refused",
            lambda: "'our-careen-own-node'" in run(["kubectl", "--kubeconfig", kubeconfig, *probe]).stderr,
        )
    finally:
        run(["kubectl", "--kubeconfig", kubeconfig, "delete", "--wait=false", "-f", str(tmp_path / "all.yaml")])


def test_a_roll_out_completes_under_the_admission_policies(story: Story) -> None:
    hosts = story.nodes(
        3,
        "--pre-reboot-node-labels=node.kubernetes.io/exclude-from-external-load-balancers=true",
        "--post-reboot-node-labels=example.org/rebooted=yes",
        "--annotate-nodes",
    )
    story.workloads(deployment("shop", 4), budget("shop", max_unavailable=1))
    listed = "node.kubernetes.io/exclude-from-external-load-balancers,example.org/rebooted"
    with policies_on(story):
        story.admin.patch(CAREEN.path, annotated(**{"admission.careen.dev/labels": listed}))
        story.count_requests_from_now()
        story.need_reboot(hosts)
        story.finishes(hosts)
    assert all(story.state(host).labels.get("example.org/rebooted") == "yes" for host in hosts)
    # A drain may request an eviction before the policies know the claim. No other request is refused.
    assert [each for each in story.forbidden() if not each.endswith("/eviction")] == []
    story.judge()
