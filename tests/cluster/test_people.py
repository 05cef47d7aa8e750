"""Tests the roles of manifests/people.yaml on the real API server: each command runs with the one role that it
needs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.careen.cli.test_rights import COMMANDS
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def scene(story: Story) -> Iterator[Story]:
    """Start three nodes without agents, and the Deployment `web`. The test then binds a role of manifests/people.yaml
    to an account (`a_person`). After the test, delete this binding."""
    hosts = story.nodes_without_agents(3)
    story.wait_for("the nodes are there", lambda: len(story.observer.nodes) == len(hosts))
    story.workloads(deployment("web", 3))
    yield story
    for role in COMMANDS:
        story.admin.delete(f"{RBAC}/{role}-story")


def a_person(story: Story, role: str) -> Path:
    """Create an account that has only this ClusterRole. Return the path of the account's kubeconfig."""
    account = f"{role}-story"
    story.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "default"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        },
    )
    return story.plane.kubeconfig(account, story.plane.service_account_token("default", account))


def set_the_stage(story: Story) -> str:
    """Write a claim of the node n02 into the lock, and a failed reboot into the annotations of n02. Return the name of
    a pod."""
    story.write_lock('{"nodeID":"n02","locks":[{"nodeID":"n02","id":"c2"}],"maxOwners":1}')
    failed = {"careen.dev/phase": "Failed", "careen.dev/reason": "x", "careen.dev/since": "2026-03-04T12:00:00Z"}
    story.admin.patch("/api/v1/nodes/n02", {"metadata": {"annotations": failed}})
    return str(story.admin.list("/api/v1/namespaces/shop/pods")[0]["metadata"]["name"])


@pytest.mark.parametrize("role", COMMANDS)
def test_every_careen_command_works_for_a_person_with_only_the_role_for_that_command(scene: Story, role: str) -> None:
    pod = set_the_stage(scene)
    kubeconfig = a_person(scene, role)
    names = {"n1": "n01", "n2": "n02", "shop/web-1": f"shop/{pod}", "{folder}/dump": str(scene.folder / "dump")}

    def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return scene.command(*(names.get(word, word) for word in words), kubeconfig=kubeconfig)

    # The role of the shadow may not read the lock. Its only command changes nothing, so the test can run it.
    harmless = COMMANDS[role][0] if role == "careen-shadow" else ("lock", "show")
    scene.wait_for("the role is in force", lambda: "forbidden" not in (done := run(harmless)).stdout + done.stderr)
    for words in COMMANDS[role]:
        done = run(words)
        assert done.returncode in (0, 4), (words, done.stdout, done.stderr)  # 4: a shadow that saw no binding
        assert "could not be read" not in done.stdout + done.stderr, (words, done.stdout, done.stderr)
        assert "is forbidden" not in done.stdout + done.stderr, (words, done.stdout, done.stderr)


def test_the_viewer_role_permits_neither_hold_nor_lock_pause_nor_cleanup(scene: Story) -> None:
    set_the_stage(scene)
    kubeconfig = a_person(scene, "careen-view")
    scene.wait_for("the role is in force", lambda: scene.command("status", kubeconfig=kubeconfig).returncode == 0)
    for words in (("hold", "n01", "--reason", "x"), ("lock", "pause"), ("cleanup", "--yes", "--even-with-agents")):
        done = scene.command(*words, kubeconfig=kubeconfig)
        assert (done.returncode, "forbidden" in done.stdout + done.stderr) == (1, True), (words, done)
    assert "c2" in (scene.observer.lock_now().text or "")
