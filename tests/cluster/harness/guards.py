"""Installs the admission component of manifests/ on a control plane, and creates clients with tokens of agents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from careen.cluster.events import Subject, event
from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.cluster import CAREEN
from tests.cluster.harness.machines.control_plane import REPOSITORY
from tests.cluster.harness.machines.hosts import Host, agent_pod
from tests.cluster.harness.story import Story

FOLDER = REPOSITORY / "manifests" / "admission"
PARAMETERS = yaml.safe_load((FOLDER / "parameters.yaml").read_text())
POLICIES: list[dict[str, Any]] = [each for each in yaml.safe_load_all((FOLDER / "policies.yaml").read_text()) if each]
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Two nodes with pods of the DaemonSet, and clients with tokens. No agent runs in the pods, so only the test
    changes the nodes.
    """

    story: Story
    own: str
    other: str
    agent: Api  # with a token that is bound to the agent's pod on the node `own`
    unbound: Api  # with a token of the same account, made for no pod


@contextmanager
def policies_on(story: Story) -> Iterator[None]:
    """Install the objects of `manifests/admission` for a `with` block. The API server enforces the policies when the
    block begins.
    """
    keep_parameters_followed(story)
    story.admin.patch(CAREEN.path, PARAMETERS)
    for policy in POLICIES:
        story.admin.create(path_of(policy), policy)
    try:
        unbound = story.plane.client(story.plane.service_account_token(CAREEN.namespace, CAREEN.account))
        for sentence, attempt in _probes(story, unbound):
            story.wait_for(sentence, lambda attempt=attempt: bool(refusal(attempt)))  # type: ignore[misc]
        unbound.close()
        yield
    finally:
        for policy in POLICIES:
            story.admin.delete(f"{path_of(policy)}/{policy['metadata']['name']}")


def keep_parameters_followed(story: Story) -> None:
    """Install a policy that matches no request, and leave it installed. If no policy were left, the API server would no
    longer watch DaemonSets, even for policies that are installed later (kubernetes/kubernetes#130887)."""
    name, group = {"name": "tests-follow-daemonsets"}, "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["tests"], "apiVersions": ["*"], "resources": ["nothing"], "operations": ["CREATE"]}
    spec = {
        "paramKind": {"apiVersion": "apps/v1", "kind": "DaemonSet"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    param = {"name": "none", "namespace": "default", "parameterNotFoundAction": "Allow"}
    bound = {"policyName": name["name"], "paramRef": param, "validationActions": ["Deny"]}
    for kind, content in (("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", bound)):
        policy = {"apiVersion": group, "kind": kind, "metadata": name, "spec": content}
        try:
            story.admin.create(path_of(policy), policy)
        except ApiError as error:
            if error.status != 409:
                raise


def _probes(story: Story, unbound: Api) -> list[tuple[str, Callable[[], object]]]:
    """Return one pair for each policy: a sentence that says that the policy is enforced, and a function that sends a
    request which only this policy refuses."""
    node = story.admin.list("/api/v1/nodes")[0]["metadata"]["name"]
    pod = story.wait_for("there is a pod", lambda: story.admin.list("/api/v1/pods"))[0]["metadata"]
    mark = {"metadata": {"annotations": {"careen.dev/reason": "probe"}}}
    lock = {"metadata": {"annotations": {"weave.works/kured-node-lock": "{}"}}}
    return [
        ("the policy careen-own-node is enforced", lambda: unbound.patch(f"/api/v1/nodes/{node}?dryRun=All", mark)),
        ("the policy careen-lock-only is enforced", lambda: unbound.patch(f"{CAREEN.path}?dryRun=All", lock)),
        (
            "the policy careen-evict-with-claim is enforced",
            lambda: evict(unbound, pod["namespace"], pod["name"], query="?dryRun=All", dryRun=["All"]),
        ),
        ("the policy careen-own-events is enforced", lambda: post(unbound, about_node(node))),
    ]


def path_of(policy: dict[str, Any]) -> str:
    return f"{_GROUP}/{_PLURALS[policy['kind']]}"


@contextmanager
def guarded(story: Story) -> Iterator[Guarded]:
    """Install the policies, and yield two nodes with clients."""
    own, other = story.nodes_without_agents(2)
    story.wait_for("the DaemonSet has a pod on each node", lambda: _pod_of(story, own) and _pod_of(story, other))
    with policies_on(story):
        unbound = story.plane.service_account_token(CAREEN.namespace, CAREEN.account)
        clients = agent_of(story, own), story.plane.client(unbound)
        yield Guarded(story=story, own=own.name, other=other.name, agent=clients[0], unbound=clients[1])
        for client in clients:
            client.close()


def agent_of(story: Story, host: Host) -> Api:
    """Return a client whose token is bound to the agent's pod on this host, like the token of the agent itself."""
    name, uid = _pod_of(story, host) or ("", "")
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    return story.plane.client(story.plane.service_account_token(CAREEN.namespace, CAREEN.account, bound_to=bound))


def _pod_of(story: Story, host: Host) -> tuple[str, str] | None:
    pod = agent_pod(story.observer, host.name)
    return (pod.name, pod.uid) if pod else None


def annotated(**annotations: str | None) -> Object:
    return {"metadata": {"annotations": annotations}}


def evict(api: Api, namespace: str, name: str, *, query: str = "", **options: Any) -> object:
    """Request the eviction of one pod. `options` are the deleteOptions of the Eviction."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        **({"deleteOptions": options} if options else {}),
    }
    return api.create(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction{query}", body)


def about_node(node: str) -> Object:
    """Build an Event about this node, as the agent of the node posts it."""
    subject = Subject(kind="Node", name=node, uid="u")
    return event(subject, reason="Probe", sentence="a probe", is_warning=False, host=node, at="2026-01-01T00:00:00Z")


def post(api: Api, told: Object, group: str = "/api/v1") -> object:
    """Post an Event as a dry run, so that the API server does not store it."""
    return api.create(f"{group}/namespaces/{told['metadata']['namespace']}/events?dryRun=All", told)


def refusal(attempt: Callable[[], object]) -> str:
    """Call `attempt`, which sends a request. Return the API server's reason for a refusal (status 403), or an empty
    text if the server accepts the request. Raise any other error.
    """
    try:
        attempt()
    except ApiError as error:
        if error.status != 403:
            raise
        ATTEMPTS[_refused_by(str(error))] += 1
        return str(error)
    ATTEMPTS[LET_IN] += 1
    return ""


LET_IN = "let in"
ATTEMPTS: Counter[str] = Counter()
"""How many attempts of `refusal` each policy (or RBAC) refused, since a test last cleared the counter."""


def _refused_by(said: str) -> str:
    named = re.search(r"ValidatingAdmissionPolicy '([^']+)'", said)
    return named.group(1) if named else "RBAC and NodeRestriction"
