"""The policies of manifests/admission: an agent's token changes its own Node and the lock, and agents need no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.harness.api import Api, ApiError
from tests.cluster.harness.cluster import CAREEN, LOCK_ANNOTATION
from tests.cluster.harness.machines.control_plane import REPOSITORY
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster

POLICIES = [
    each for each in yaml.safe_load_all((REPOSITORY / "manifests" / "admission" / "policies.yaml").read_text()) if each
]
GROUP = "/apis/admissionregistration.k8s.io/v1"


def path(policy: dict[str, Any]) -> str:
    plural = {
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    }
    return f"{GROUP}/{plural[policy['kind']]}"


@pytest.fixture
def guarded(story: Story) -> Iterator[Story]:
    for policy in POLICIES:
        story.admin.create(path(policy), policy)
    yield story
    for policy in POLICIES:
        story.admin.delete(f"{path(policy)}/{policy['metadata']['name']}")


def as_agent_of(story: Story, host: Any) -> Api:
    """A client with the token that the host's agent has."""
    return story.plane.client(story._token(host))


def is_refused(api: Api, object_path: str, patch: dict[str, Any]) -> str:
    """Why the patch was refused; empty when it was not. Tried with dryRun, so nothing changes."""
    try:
        api.patch(f"{object_path}?dryRun=All", patch)
    except ApiError as error:
        if error.status != 403:
            raise
        return str(error)
    return ""


def test_an_agent_changes_its_own_node_and_the_lock_and_nothing_else(guarded: Story) -> None:
    own, other = guarded.nodes(2)
    guarded.wait_for("both agents' pods run", lambda: own.agent_pod and other.agent_pod)
    agent = as_agent_of(guarded, own)
    mark: dict[str, Any] = {"metadata": {"annotations": {"careen.dev/reason": "test"}}}
    # A new policy takes some seconds to be enforced.
    guarded.wait_for("the policies are enforced", lambda: is_refused(agent, f"/api/v1/nodes/{other.name}", mark))
    assert "may change the Node it runs on, and no other" in is_refused(agent, f"/api/v1/nodes/{other.name}", mark)
    assert is_refused(agent, f"/api/v1/nodes/{own.name}", mark) == ""
    assert is_refused(agent, f"/api/v1/nodes/{own.name}", {"spec": {"unschedulable": True}}) == ""

    guarded.wait_for(
        "the other policy is enforced", lambda: is_refused(agent, CAREEN.path, {"metadata": {"labels": {"x": "y"}}})
    )
    assert is_refused(agent, CAREEN.path, {"metadata": {"annotations": {LOCK_ANNOTATION: "{}"}}}) == ""
    assert "no other annotation" in is_refused(agent, CAREEN.path, {"metadata": {"annotations": {"x": "y"}}})
    assert "nothing else of it" in is_refused(agent, CAREEN.path, {"spec": {"minReadySeconds": 7}})
    image = {"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "evil"}]}}}}
    assert "nothing else of it" in is_refused(agent, CAREEN.path, image)


def test_the_agents_need_no_more_for_a_reboot(guarded: Story) -> None:
    hosts = guarded.nodes(2)
    guarded.need_reboot(hosts[:1])
    guarded.finishes_one(hosts[0])
    assert guarded.forbidden() == []
