"""The RBAC rights that an agent needs, each with the call that needs it, and which of them are missing.

The list is the source of `manifests/rbac.yaml`. An agent reviews its rights at its start: otherwise a missing one would
be noticed only during a drain. It first reads its rules as a whole (SelfSubjectRulesReview, two requests), then asks
for each right that they do not grant (SelfSubjectAccessReview), because the rules may be incomplete if RBAC is not the
only authorizer.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from careen.cluster.wire.answers import KINDS, asked_for
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Refused
from careen.cluster.wire.transport import Request
from scheduler_core.values import Value

RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class OptionalRight(StrEnum):
    """Optional features: kured needs none of them, so kured's roles do not grant their rights."""

    SETTINGS = "settings"  # the ConfigMap
    FOLLOWING = "following"  # to notice changes of the ConfigMap
    WATCHING = "watching"  # the own Node, while the agent sleeps
    PATCH = "patch"  # to patch the lock; optional only if the agent may update the lock's DaemonSet instead
    NODES = "nodes"  # in one list
    COORDINATORS = "coordinators"  # in all namespaces
    OWNERS = "owners"  # of displaced pods
    EVENTS = "events"
    FORECAST = "forecast"


class Right(Value, kw_only=True):
    """The right to one verb on one resource. An empty `namespace` means all, an empty `name` every object.

    Without the right the agent switches off the feature `part`, or does not start if `part` is None.
    """

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    because: str
    part: OptionalRight | None = None

    def is_asked_by(self, request: Request) -> bool:
        """Whether the API server requires this right for the request."""
        asked = asked_for(request.path)
        verb = ("get" if asked.name else "list") if request.method == "GET" else _VERBS[request.method]
        return (
            (self.verb, KINDS[self.resource], self.subresource) == (verb, asked.kind, "")
            and self.namespace in ("", asked.namespace)
            and self.name in ("", asked.name)
        )

    @property
    def title(self) -> str:
        """Such as `create pods/eviction`, `patch daemonsets.apps careen/careen` or `create events in namespace
        careen`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        resource = f"{resource}/{self.subresource}" if self.subresource else resource
        if self.namespace and not self.name:
            return f"{self.verb} {resource} in namespace {self.namespace}"
        which = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {resource} {which}".rstrip()


_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def needed_rights(
    *, node: str, namespace: str, daemonset: str, config_map: str, forecast: bool, sleeps: bool = False
) -> tuple[Right, ...]:
    """Every right that an agent needs, in the order of a node's phases."""
    rights = (
        Right(
            verb="get",
            resource="nodes",
            name=node,
            because="each turn begins with a read of its own Node",
        ),
        Right(
            verb="watch",
            resource="nodes",
            name=node,
            because="a sleeping agent notices a person's request on its Node within seconds",
            part=OptionalRight.WATCHING,
        ),
        Right(
            verb="patch",
            resource="nodes",
            name=node,
            because="the agent writes taint, cordon and progress on its own Node",
        ),
        Right(
            verb="list",
            resource="nodes",
            because="concurrency and budgets count the nodes that are down",
            part=OptionalRight.NODES,
        ),
        Right(
            verb="get",
            resource="daemonsets",
            group="apps",
            namespace=namespace,
            name=daemonset,
            because="the lock is an annotation of the agents' DaemonSet",
        ),
        Right(
            verb="patch",
            resource="daemonsets",
            group="apps",
            namespace=namespace,
            name=daemonset,
            because="agents write their claims into the lock",
            part=OptionalRight.PATCH,
        ),
        Right(
            verb="list",
            resource="daemonsets",
            group="apps",
            because="the agent must notice another reboot coordinator, such as kured",
            part=OptionalRight.COORDINATORS,
        ),
        Right(verb="list", resource="pods", because="the agent finds the pods of its node before it drains the node"),
        Right(
            verb="get",
            resource="pods",
            because="the agent checks whether an evicted pod is gone, and which DaemonSet controls the agent's own pod",
        ),
        Right(
            verb="create",
            resource="pods",
            subresource="eviction",
            because="the agent evicts pods, and never deletes them",
        ),
        *(
            Right(
                verb=verb,
                resource=resource,
                group=group,
                because="the agent waits until the owners of evicted pods are as healthy as before the drain",
                part=OptionalRight.OWNERS,
            )
            for group, resource in (
                ("apps", "replicasets"),
                ("apps", "statefulsets"),
                ("", "replicationcontrollers"),
                ("batch", "jobs"),
            )
            for verb in ("get", "list")
        ),
        Right(
            verb="create",
            resource="events",
            namespace="default",
            because="the agent reports changes of its decision as Events of the Node",
            part=OptionalRight.EVENTS,
        ),
        Right(
            verb="create",
            resource="events",
            namespace=namespace,
            because="the agent reports unusable settings as Events of the ConfigMap",
            part=OptionalRight.EVENTS,
        ),
        Right(
            verb="get",
            resource="configmaps",
            namespace=namespace,
            name=config_map,
            because="the agent reads its settings before it does anything",
            part=OptionalRight.SETTINGS,
        ),
        *(
            Right(
                verb=verb,
                resource="configmaps",
                namespace=namespace,
                name=config_map,
                because="the agent follows changes of its settings",
                part=OptionalRight.FOLLOWING,
            )
            for verb in ("list", "watch")
        ),
    )
    wanted = {
        OptionalRight.FORECAST: forecast,
        OptionalRight.SETTINGS: bool(config_map),
        OptionalRight.FOLLOWING: bool(config_map),
        OptionalRight.WATCHING: sleeps,
    }
    return tuple(right for right in rights + FORECAST_RIGHTS if right.part is None or wanted.get(right.part, True))


FORECAST_RIGHTS: tuple[Right, ...] = tuple(
    Right(verb="list", resource=resource, group=group, because=why, part=OptionalRight.FORECAST)
    for group, resource, why in (
        ("batch", "jobs", "the forecast marks an evicted pod as lost if the pod's Job will not replace the pod"),
        ("policy", "poddisruptionbudgets", "the forecast says which budgets delay an eviction"),
        ("", "namespaces", "the forecast resolves namespace selectors of pod affinity"),
        ("", "services", "the default topology spread constraints of a pod depend on the Services that select it"),
        ("", "persistentvolumeclaims", "the forecast finds the volumes of a pod"),
        ("", "persistentvolumes", "the forecast knows where a volume can be attached"),
        ("storage.k8s.io", "storageclasses", "the forecast knows how a volume is bound"),
        ("storage.k8s.io", "csinodes", "the forecast finds out how many more volumes a node can attach"),
        ("storage.k8s.io", "csidrivers", "the forecast finds out how many more volumes a node can attach"),
        ("storage.k8s.io", "csistoragecapacities", "the forecast knows where a volume can be created"),
        ("storage.k8s.io", "volumeattachments", "the forecast finds out how many more volumes a node can attach"),
        ("resource.k8s.io", "resourceclaims", "the forecast finds the devices for a pod"),
        ("resource.k8s.io", "deviceclasses", "the forecast finds the devices for a pod"),
    )
)


class _Rule(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    verbs: list[str] = []
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []

    def gives(self, right: Right) -> bool:
        """By the logic of RBAC's authorizer (pkg/apis/rbac/v1/evaluation_helpers.go)."""
        resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        return (
            _has(self.verbs, right.verb)
            and _has(self.api_groups, right.group)
            and (
                _has(self.resources, resource)
                or (right.subresource != "" and f"*/{right.subresource}" in self.resources)
            )
            and (not self.resource_names or right.name in self.resource_names)
        )


class _RulesStatus(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    resource_rules: list[_Rule] | None


class _RulesReview(msgspec.Struct, gc=False, frozen=True):
    status: _RulesStatus


class _ReviewStatus(msgspec.Struct, gc=False, frozen=True):
    allowed: bool


class _Review(msgspec.Struct, gc=False, frozen=True):
    status: _ReviewStatus


async def missing_rights(api: ClusterApi, rights: tuple[Right, ...]) -> tuple[Right, ...]:
    """Those that this account does not have. Raises `ClusterError` if the server does not answer."""
    rules = {
        namespace: await _rules(api, namespace)
        for namespace in sorted({"default", *(right.namespace for right in rights if right.namespace)})
    }
    doubtful = [right for right in rights if not _is_given(right, rules)]
    # Sequential: usually no request is needed, and a fleet that starts at once must not send bursts.
    return tuple([right for right in doubtful if not await _is_allowed(api, right)])


def _is_given(right: Right, rules: dict[str, list[_Rule]]) -> bool:
    """Whether this account's rules, by namespace, grant the right. A grant in one namespace may come from a Role, so a
    right for all namespaces must be granted in each of `rules`."""
    where = [right.namespace] if right.namespace else list(rules)
    return all(any(rule.gives(right) for rule in rules[namespace]) for namespace in where)


def _has(listed: list[str], wanted: str) -> bool:
    return wanted in listed or "*" in listed


async def _rules(api: ClusterApi, namespace: str) -> list[_Rule]:
    """This account's rules in the namespace; none if the server refuses the review."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    try:
        return (await api.review(RULES, body, _RulesReview)).status.resource_rules or []
    except Refused:
        return []


async def _is_allowed(api: ClusterApi, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    return (await api.review(REVIEWS, body, _Review)).status.allowed
