"""Hints for pods refused because of other pods: topology spread, affinity or anti-affinity.

Source: isSchedulableAfter… in plugins/podtopologyspread/plugin.go and plugins/interpodaffinity/plugin.go, v1.36. The
selector of default constraints depends on the cluster's Services, which hints do not know: for a pod with default
constraints, every change of other pods is assumed to help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.hints.resources import holds_a_place, is_bound
from scheduler_core.queue.queued_pod import identity

Labels = Mapping[str, str]
_Matches = Callable[[tuple[PodAffinityTerm, ...], Pod], bool]
_IsThere = Callable[[Pod], bool]


# ---- spreading ----


def _hard_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    return [constraint for constraint in pod.spec.topology_spread if constraint.when_unsatisfiable == "DoNotSchedule"]


def _is_counted(constraint: TopologySpreadConstraint, pod: Pod, labels: Labels) -> bool:
    own = [(key, pod.labels[key]) for key in constraint.match_label_keys if key in pod.labels]
    return constraint.selector.and_labels(own).matches(labels)


def _neighbour(kube_version: KubeVersion) -> _IsThere:
    return holds_a_place if kube_version.nominated_pods_are_neighbours else is_bound


def _is_involved(is_there: _IsThere, pod: Pod, other: Pod) -> bool:
    return identity(pod) == identity(other) or (is_there(other) and other.namespace == pod.namespace)


def _pod_changes_a_count(is_there: _IsThere, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    if any(not _is_involved(is_there, pod, other) for other in (old, new) if other is not None):
        return False
    if not pod.spec.topology_spread:
        return True
    constraints = _hard_constraints(pod)
    if old is None or new is None:
        changed = new or old
        assert changed is not None
        return any(_is_counted(constraint, pod, changed.labels) for constraint in constraints)
    if (
        identity(pod) == identity(new)
        and old.spec.tolerations != new.spec.tolerations
        and any(c.honors_taints for c in constraints)
    ):
        return True
    return any(
        _is_counted(constraint, pod, old.labels) != _is_counted(constraint, pod, new.labels)
        for constraint in constraints
    )


def _node_changes_a_domain(pod: Pod, old: Node | None, new: Node | None) -> bool:
    if not pod.spec.topology_spread:
        return True
    keys = [constraint.topology_key for constraint in _hard_constraints(pod)]
    took_part, takes_part = (node is not None and all(key in node.labels for key in keys) for node in (old, new))
    if old is None or new is None:
        return took_part or takes_part
    if took_part != takes_part:
        return True
    return takes_part and (any(old.labels[key] != new.labels[key] for key in keys) or old.taints != new.taints)


def pod_topology_spread(kube_version: KubeVersion) -> tuple[EventHint, ...]:
    of_pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
    of_nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
    return (
        EventHint(ClusterEvent(Resource.POD, of_pods), partial(_pod_changes_a_count, _neighbour(kube_version))),
        EventHint(ClusterEvent(Resource.NODE, of_nodes), _node_changes_a_domain),
    )


# ---- affinity ----


def _matches_all(terms: tuple[PodAffinityTerm, ...], pod: Pod) -> bool:
    """No pod matches an empty list. Ignores the namespace's labels, as the real hint does."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _matches_any(terms: tuple[PodAffinityTerm, ...], pod: Pod) -> bool:
    return any(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _pod_changes_affinity(kube_version: KubeVersion, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    is_there = _neighbour(kube_version)
    keeps_away: _Matches = _matches_any if kube_version.one_anti_affinity_term_requeues else _matches_all
    if kube_version.own_labels_requeue and old is not None and new is not None and identity(pod) == identity(new):
        return True
    if any(not is_there(other) for other in (old, new) if other is not None):
        return False
    wanted, unwanted = pod.spec.pod_affinity.required, pod.spec.pod_anti_affinity.required
    if old is not None and new is not None:
        comes = not _matches_all(wanted, old) and _matches_all(wanted, new)
        return comes or (keeps_away(unwanted, old) and not keeps_away(unwanted, new))
    if new is not None:
        return _matches_all(wanted, new)
    assert old is not None
    return keeps_away(unwanted, old) or (
        kube_version.deleted_opponents_requeue and keeps_away(old.spec.pod_anti_affinity.required, pod)
    )


def _node_has_a_key(pod: Pod, _old: Node | None, new: Node) -> bool:
    terms = (*pod.spec.pod_affinity.required, *pod.spec.pod_anti_affinity.required)
    return any(term.topology_key in new.labels for term in terms)


def _node_changes_affinity(pod: Pod, old: Node | None, new: Node) -> bool:
    for term in pod.spec.pod_affinity.required:
        before, after = (None if old is None else old.labels.get(term.topology_key)), new.labels.get(term.topology_key)
        if after is not None and before != after:
            return True
    for term in pod.spec.pod_anti_affinity.required:
        if old is None:
            return True
        before = old.labels.get(term.topology_key)
        if before is not None and before != new.labels.get(term.topology_key):
            return True
    return False


def inter_pod_affinity(kube_version: KubeVersion) -> tuple[EventHint, ...]:
    of_pods = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    of_nodes = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    return (
        EventHint(of_pods, partial(_pod_changes_affinity, kube_version)),
        EventHint(of_nodes, _node_changes_affinity if kube_version.only_new_domains_requeue else _node_has_a_key),
    )
