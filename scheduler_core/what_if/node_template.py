"""A node that does not exist yet, from an existing node or a manifest, with the DaemonSet pods that would run on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from scheduler_core.arguments import checked, expect_fields
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.labels import NodeAffinityRules, NodeSelector, NodeSelectorTerm
from scheduler_core.model.node import HOSTNAME_LABEL, Node
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.model.taints import Taint
from scheduler_core.snapshot.pods.daemons import wants
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

# Temporary states, set by the node-lifecycle controller and autoscalers.
_PASSING_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupt",  # disrupted; before 1.0 disruption
)
# The plugins that decide whether a DaemonSet runs on a node; free resources do not matter.
_WANTED_BY: Final = frozenset({"NodeAffinity", "TaintToleration"})


class NodeTemplate(Value):
    """A node that does not exist yet, and the DaemonSet pods that run on each new node from the start. `name` is the
    prefix of the new nodes' names."""

    name: str
    node: Node
    daemons: tuple[Pod, ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)

    def __repr__(self) -> str:
        return f"<NodeTemplate {self.name!r} node={self.node!r} daemons={len(self.daemons)}>"


@checked
def like_node(snapshot: Snapshot, node_name: str) -> NodeTemplate:
    """New nodes like this node: with its DaemonSet pods, without other pods, and without its cordon, temporary taints,
    images and annotations. Raises UnknownNodeError if the node does not exist."""
    node = snapshot.node(node_name)
    fresh = replace(
        node,
        unschedulable=False,
        annotations={},
        images=(),
        taints=tuple(taint for taint in node.taints if not _passes(taint)),
    )
    running = tuple(pod for pod in snapshot.pods_on(node_name) if _is_daemon(pod) and not pod.terminating)
    sets = {(pod.namespace, pod.owner) for pod in running}
    coming = (each for each in snapshot.objects.daemons if (each.namespace, each.owner) not in sets)
    return NodeTemplate(node_name, fresh, (*running, *(each for each in coming if wants(each, fresh))))


@checked
def template_from_manifest(snapshot: Snapshot, node: Node, scheduler: Scheduler) -> NodeTemplate:
    """New nodes like this one, which is not in the cluster. Each gets a pod of every DaemonSet that already has a pod
    in the cluster, or that `Snapshot.from_manifests` has read, and whose node affinity and tolerations accept the new
    node."""
    alone = Snapshot.of((node,), objects=snapshot.objects)
    daemons = tuple(pod for pod in _one_of_each_daemon_set(snapshot) if _wants(scheduler, alone, pod))
    return NodeTemplate(node.name or "node", node, daemons)


def new_nodes(template: NodeTemplate, count: int, snapshot: Snapshot) -> Iterator[tuple[Node, tuple[Pod, ...]]]:
    """Each has its own name, uid and host name label. Another label with the name of the template's node as value gets
    the new node's name."""
    taken = snapshot.columns.row_of
    youngest = max((node.created_at for node in snapshot.nodes), default="")
    made, number = 0, 0
    while made < count:
        number += 1
        name = f"{template.name}-new-{number}"
        if name in taken:
            continue
        made += 1
        labels = {
            key: name if key == HOSTNAME_LABEL or value == template.node.name else value
            for key, value in template.node.labels.items()
        }
        node = replace_value(template.node, name=name, uid=name, labels=labels, created_at=youngest)
        pods = [replace_value(pod, name=f"{pod.name}-{name}", uid="", node_name=name) for pod in template.daemons]
        yield node, tuple(pods)


def _passes(taint: Taint) -> bool:
    return taint.key.startswith(_PASSING_TAINTS)


def _is_daemon(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def _one_of_each_daemon_set(snapshot: Snapshot) -> list[Pod]:
    pods = (*snapshot.objects.daemons, *snapshot.placed_pods)
    found = {(pod.namespace, pod.owner.name): pod for pod in pods if pod.owner and _is_daemon(pod)}
    return [found[key] for key in sorted(found)]


def _wants(scheduler: Scheduler, alone: Snapshot, pod: Pod) -> bool:
    unbound = replace_value(pod, node_name="", spec=_without_its_node(pod.spec))
    try:
        verdict = scheduler.schedule(alone, unbound).statuses[alone.node_names[0]]
    except NoProfileError:
        return True
    return verdict.plugin not in _WANTED_BY


def _without_its_node(spec: PodSpec) -> PodSpec:
    """As in the DaemonSet's template: without the required affinity by which the controller pins each pod to its node
    (replaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util, v1.36)."""
    affinity = spec.node_affinity
    if affinity is None or affinity.required is None:
        return spec
    terms = tuple(NodeSelectorTerm(expressions=term.expressions) for term in affinity.required.terms)
    required = None if all(term.is_empty for term in terms) else NodeSelector(terms)
    return replace(spec, node_affinity=NodeAffinityRules(required=required, preferred=affinity.preferred))
