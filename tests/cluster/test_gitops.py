"""Tests GitOps tools and the lock: a server-side apply and a three-way merge keep the lock, and `kubectl replace`
removes the lock.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.cluster.harness.cluster import LOCK_ANNOTATION
from tests.cluster.harness.machines.control_plane import REPOSITORY
from tests.cluster.harness.story import Story
from tests.cluster.test_helm import CLAIM
from tests.cluster.test_lost_objects import start_a_slow_drain
from tests.patience import run

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH"),
]

MANIFEST = REPOSITORY / "manifests" / "daemonset.yaml"
# The arguments of kubectl that act like each tool, with the tool's field manager.
APPLIES = {
    "Argo CD, server-side": ("apply", "--server-side", "--field-manager=argocd-controller", "--force-conflicts"),
    "Flux": ("apply", "--server-side", "--field-manager=kustomize-controller", "--force-conflicts"),
    "kubectl, and Argo CD with its default settings": ("apply",),
}


def kubectl(story: Story, *words: str) -> None:
    done = run(["kubectl", "--kubeconfig", str(story.plane.folder / "admin.kubeconfig"), *words])
    assert done.returncode == 0, done.stderr


def changed(folder: Path, image: str) -> Path:
    """Write the manifest with a new image and version, like a commit in a GitOps repository. Return the file."""
    content = yaml.safe_load(MANIFEST.read_text())
    content["metadata"]["annotations"] = {"example.org/version": image}
    content["spec"]["template"]["spec"]["containers"][0]["image"] = f"registry.example/careen:{image}"
    path = folder / f"{image}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("tool", APPLIES)
def test_kubectl_apply_keeps_the_lock(story: Story, tmp_path: Path, tool: str) -> None:
    """The first apply adopts an object that another client created. The second apply finds the tool's own managed
    fields or last applied state.
    """
    story.write_lock(CLAIM)
    for image in ("1", "2"):
        kubectl(story, *APPLIES[tool], "-f", str(changed(tmp_path, image)))
        annotations = story.admin.get(story.identity.path)["metadata"]["annotations"]
        assert annotations["example.org/version"] == image
        assert annotations[LOCK_ANNOTATION] == CLAIM
    # A claim that was written after the tool's last read is kept as well.
    other = CLAIM.replace("n00", "n01")
    story.write_lock(other)
    kubectl(story, *APPLIES[tool], "-f", str(changed(tmp_path, "3")))
    assert story.admin.get(story.identity.path)["metadata"]["annotations"][LOCK_ANNOTATION] == other


def test_a_draining_node_writes_its_claim_again_after_kubectl_replace_removed_the_lock(story: Story) -> None:
    """Argo CD's `Replace=true` and helm's `--force-replace` remove the lock in the same way."""
    hosts = story.nodes(3)
    holder = start_a_slow_drain(story, hosts)
    assert holder.name in story.holders()
    uid = story.observer.lock_now().uid
    kubectl(story, "replace", "-f", str(MANIFEST))
    story.wait_for(
        "the holder's claim is in the lock again", lambda: story.holders() == (holder.name,) or holder.reboots
    )
    assert story.observer.lock_now().uid == uid
    story.wait_for("it is reported", lambda: story.events("EntryPutBack"))
    story.finishes(hosts, 240)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1, 1]


def test_a_manifest_that_contains_the_lock_annotation_overwrites_the_lock(story: Story, tmp_path: Path) -> None:
    """Each apply of the manifest overwrites the lock. For this reason, the chart refuses the lock annotation in its
    values.
    """
    content = yaml.safe_load(MANIFEST.read_text())
    content["metadata"]["annotations"] = {LOCK_ANNOTATION: '{"nodeID":"manual"}'}
    (tmp_path / "paused.yaml").write_text(yaml.safe_dump(content))
    for words in APPLIES.values():
        story.write_lock(CLAIM)
        kubectl(story, *words, "-f", str(tmp_path / "paused.yaml"))
        assert story.admin.get(story.identity.path)["metadata"]["annotations"][LOCK_ANNOTATION] == '{"nodeID":"manual"}'
