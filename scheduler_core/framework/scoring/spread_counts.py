"""Matching pods in each topology domain, for PodTopologySpread.

Which nodes take part, what a domain is, and which pods count is decided as in kube-scheduler
(plugins/podtopologyspread/{filtering,scoring,common}.go and plugins/helper/spread.go, v1.36).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import MAX_NODE_SCORE, Scores
from scheduler_core.model.labels import EVERYTHING, LabelSelector, Requirement
from scheduler_core.model.node import HOSTNAME_LABEL
from scheduler_core.model.pod import Pod, TopologySpreadConstraint
from scheduler_core.model.selecting_owner import SelectingOwner
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_labels import Topology, sum_by_code
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.pod_classes import PodQuery
from scheduler_core.snapshot.pods.tallies import Counts, DomainTally, QueryTally
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# ---- which pods count ----


def with_match_label_keys(constraint: TopologySpreadConstraint, pod: Pod) -> TopologySpreadConstraint:
    """The selector also requires the pod's values of the constraint's `matchLabelKeys`. Keys that the pod does not have
    are ignored."""
    if not constraint.match_label_keys:
        return constraint
    own = [(key, pod.labels[key]) for key in constraint.match_label_keys if key in pod.labels]
    return replace_value(constraint, selector=constraint.selector.and_labels(own))


def with_selector(constraint: TopologySpreadConstraint, selector: LabelSelector) -> TopologySpreadConstraint:
    """For a default constraint; the selector comes from the pod's services and controller."""
    return replace_value(constraint, selector=selector)


_CONTROLLERS: Final = {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


def default_selector(snapshot: Snapshot, pod: Pod) -> LabelSelector:
    """The selectors of the pod's services and of its controller, joined. If it is empty, no default constraint
    applies."""
    key = ("default selector", pod.namespace, tuple(pod.labels.items()), pod.owner)
    return snapshot.remember(key, lambda: _deduce_selector(_owners_in(snapshot, pod.namespace), pod))


class _Owners(Value):
    """The services (by the first label of their selector) and controllers (by kind and name) of one namespace. Fast
    even with tens of thousands of old ReplicaSets."""

    services: Mapping[tuple[str, str], Sequence[SelectingOwner]]
    controllers: Mapping[tuple[str, str], SelectingOwner]


def _owners_in(snapshot: Snapshot, namespace: str) -> _Owners:
    return snapshot.remember(("owners", namespace), lambda: _indexed(snapshot.objects.owners.get(namespace, ())))


def _indexed(owners: Sequence[SelectingOwner]) -> _Owners:
    services: dict[tuple[str, str], list[SelectingOwner]] = {}
    for owner in owners:
        if owner.kind == "Service" and owner.selects_by_labels:  # an empty selector adds nothing
            services.setdefault(owner.selects_by_labels[0], []).append(owner)
    return _Owners(services, {(owner.kind, owner.name): owner for owner in owners if owner.kind != "Service"})


def _deduce_selector(owners: _Owners, pod: Pod) -> LabelSelector:
    pairs: dict[str, str] = {}
    for first in pod.labels.items():
        for service in owners.services.get(first, ()):
            wanted = service.selects_by_labels or ()
            if all(pod.labels.get(key) == value for key, value in wanted):
                pairs.update(wanted)
    more: tuple[Requirement, ...] = ()
    controller = _controller(owners, pod)
    if controller is not None and controller.kind == "ReplicationController":
        pairs.update(controller.selects_by_labels or ())
    elif controller is not None:
        more = controller.selector.requirements or ()
    return (
        LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items())) + more)
        if pairs or more
        else EVERYTHING
    )


def _controller(owners: _Owners, pod: Pod) -> SelectingOwner | None:
    owner = pod.owner
    if owner is None or (owner.api_version, owner.kind) not in _CONTROLLERS:
        return None
    return owners.controllers.get((owner.kind, owner.name))


@lru_cache(maxsize=4096)
def _query(namespace: str, selector: LabelSelector) -> PodQuery:
    return PodQuery(((frozenset({namespace}), selector),), live_only=True)


def _pods_per_node(snapshot: Snapshot, namespace: str, selector: LabelSelector) -> Counts:
    """Without terminating pods. An empty selector matches no pod (countPodsMatchSelector in common.go)."""
    if selector.is_empty or selector.requirements is None:
        return np.zeros(len(snapshot.columns), dtype=np.int32)
    return snapshot.tally(QueryTally(_query(namespace, selector)))


def _pods_per_domain(snapshot: Snapshot, namespace: str, constraint: TopologySpreadConstraint) -> Ints:
    """As `_pods_per_node`, over all nodes of each domain. The last element is for nodes without the key."""
    selector = constraint.selector
    if selector.is_empty or selector.requirements is None:
        return np.zeros(snapshot.columns.labels.topology(constraint.topology_key).missing + 1, dtype=np.int64)
    tally = DomainTally(_query(namespace, selector), constraint.topology_key)
    return snapshot.tally(tally).astype(np.int64)


# ---- which nodes count ----


def _included(snapshot: Snapshot, pod: Pod, constraint: TopologySpreadConstraint) -> Mask | None:
    """For each node, whether the constraint's policies (nodeAffinityPolicy, nodeTaintsPolicy) include it. None: all."""
    mask: Mask | None = None
    if constraint.honors_affinity:
        required = None if pod.spec.node_affinity is None else pod.spec.node_affinity.required
        if pod.spec.node_selector or required is not None:
            mask = snapshot.columns.labels.selected(pod.spec.node_selector, required)
    if constraint.honors_taints:
        tolerated = snapshot.columns.tolerated(pod.spec.tolerations)
        mask = tolerated if mask is None else mask & tolerated
    return mask


def _with_all_keys(snapshot: Snapshot, constraints: tuple[TopologySpreadConstraint, ...]) -> Mask | None:
    """For each node, whether it has the keys of all constraints. None: all nodes have them."""
    mask: Mask | None = None
    for constraint in constraints:
        topology = snapshot.columns.labels.topology(constraint.topology_key)
        if not topology.everywhere:
            mask = topology.present if mask is None else mask & topology.present
    return mask


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


# ---- DoNotSchedule ----


class HardConstraint(Value, eq=False):
    """One DoNotSchedule constraint with its counts. `counts` and `is_domain` are by value of the topology key,
    `participating` by row (None: every node).

    A value is a domain if a participating node has it, even without pods. `own` is 1 if the pod itself would count.
    `fewest` is the smallest count of a domain.
    """

    constraint: TopologySpreadConstraint
    topology: Topology
    counts: Ints
    is_domain: Mask | None
    participating: Mask | None
    own: int
    fewest: int

    def skew_in(self, value: str) -> int:
        """The skew if the pod ran in this domain: its count with the pod, minus the smallest count of any domain."""
        code = self.topology.code_of.get(value)
        return (0 if code is None else int(self.counts[code])) + self.own - self.fewest

    @property
    def is_any_too_skewed(self) -> bool:
        """Whether the pod would exceed maxSkew in some domain."""
        return bool(np.maximum.reduce(self.counts) > self._most)

    @property
    def too_skewed(self) -> Mask:
        """For each node, whether the pod would exceed maxSkew in its domain."""
        return (self.counts > self._most).take(self.topology.codes)

    @property
    def _most(self) -> int:
        return self.constraint.max_skew - self.own + self.fewest

    def changed(self, other: Pod, row: int, sign: int) -> HardConstraint:
        """After `other` was added to the node (`sign` 1) or removed (-1). Unlike `count_hard`, counts terminating pods
        and lets an empty selector match every pod, as updateWithPod of filtering.go does."""
        if not self.constraint.selector.matches(other.labels) or (
            self.participating is not None and not self.participating[row]
        ):
            return self
        counts = self.counts.copy()
        counts[self.topology.codes[row]] += sign
        return replace_value(self, counts=counts, fewest=_fewest(counts, self.is_domain, self.constraint.min_domains))


def _fewest(counts: Ints, is_domain: Mask | None, min_domains: int | None) -> int:
    """The smallest count of a domain; 0 without domains, or with fewer than minDomains."""
    domains = counts[:-1] if is_domain is None else counts[is_domain]
    return 0 if not len(domains) or len(domains) < (min_domains or 1) else int(domains.min())


class HardSpread(Value):
    """`takes_part`: for each node, whether it has the keys of all constraints. None: all nodes have them."""

    constraints: tuple[HardConstraint, ...]
    takes_part: Mask | None

    def changed(self, pod: Pod, other: Pod, row: int, sign: int) -> HardSpread:
        if other.namespace != pod.namespace or (self.takes_part is not None and not self.takes_part[row]):
            return self
        return replace_value(self, constraints=tuple(c.changed(other, row, sign) for c in self.constraints))


def count_hard(snapshot: Snapshot, pod: Pod, constraints: tuple[TopologySpreadConstraint, ...]) -> HardSpread:
    """Over all nodes of the snapshot, even cordoned ones."""
    complete = _with_all_keys(snapshot, constraints)
    return HardSpread(tuple(_count_hard(snapshot, pod, c, complete) for c in constraints), complete)


def _count_hard(
    snapshot: Snapshot, pod: Pod, constraint: TopologySpreadConstraint, complete: Mask | None
) -> HardConstraint:
    topology = snapshot.columns.labels.topology(constraint.topology_key)
    participating = _both(complete, _included(snapshot, pod, constraint))
    if participating is None:
        counts = _pods_per_domain(snapshot, pod.namespace, constraint)
    else:
        counts = topology.sum_by_domain(_pods_per_node(snapshot, pod.namespace, constraint.selector) * participating)
    is_domain: Mask | None = None
    if participating is not None:
        is_domain = np.zeros(topology.missing + 1, dtype=bool)
        is_domain[topology.codes[participating]] = True
        is_domain[topology.missing] = False
    return HardConstraint(
        constraint=constraint,
        topology=topology,
        counts=counts,
        is_domain=is_domain,
        participating=participating,
        own=int(constraint.selector.matches(pod.labels)),
        fewest=_fewest(counts, is_domain, constraint.min_domains),
    )


# ---- ScheduleAnyway ----


class SoftConstraint(Value, eq=False):
    """One ScheduleAnyway constraint: matching pods `by_node` if the topology key is the host name, else `by_domain`. A
    key with many values gets a higher `weight`, because each of its domains has fewer pods."""

    constraint: TopologySpreadConstraint
    topology: Topology
    weight: float
    by_domain: Ints | None
    by_node: Counts | None

    def points(self) -> tuple[NDArray[np.intp] | Counts, list[float]]:
        """What this constraint adds to each node's raw score: a code for each node, and the points for each code.

        With the host name as key, the code is the number of matching pods on the node, otherwise the index of the
        node's domain. Nodes without the key share one further code, with 0 points.
        """
        weight, more = self.weight, float(self.constraint.max_skew - 1)
        if self.by_domain is not None:
            by_code = [count * weight + more for count in self.by_domain.tolist()]
            if not self.topology.everywhere:
                by_code[self.topology.missing] = 0.0
            return self.topology.codes, by_code
        counts = _required(self.by_node)
        by_code = [count * weight + more for count in range(int(np.maximum.reduce(counts, initial=0)) + 1)]
        by_code.append(0.0)  # for nodes without the key
        codes = counts if self.topology.everywhere else np.where(self.topology.present, counts, len(by_code) - 1)
        return codes, by_code


class SoftSpread(Value):
    """`ignored`: for each node, whether it lacks a required topology key; it then scores 0. None: no node is
    ignored."""

    constraints: tuple[SoftConstraint, ...]
    ignored: Mask | None

    def scores(self, nodes: NodeList) -> Scores:
        """Raw scores: more matching pods in a node's domains give a higher raw and later a lower normalized score."""
        found = [soft.points() for soft in self.constraints]
        rounded = _rounded(reduce(np.add, [np.array(by_code).take(nodes.take(codes)) for codes, by_code in found]))
        return rounded if self.ignored is None else np.where(nodes.take(self.ignored), 0, rounded)

    def table(self, nodes: NodeList) -> tuple[list[int], NDArray[np.integer]] | None:
        """The normalized score of each combination of codes, and the combination of each node. None if there are many
        combinations, or if nodes are ignored."""
        found = [soft.points() for soft in self.constraints]
        if self.ignored is not None or math.prod(len(by_code) for _, by_code in found) > _MOST_COMBINATIONS:
            return None
        cells: NDArray[np.integer]
        (cells, totals), *others = found
        for codes, by_code in others:
            cells = cells * len(by_code) + codes
            totals = [total + points for total in totals for points in by_code]
        cells = nodes.take(cells)
        occurs = np.bincount(cells, minlength=len(totals)).tolist()
        raw = [_rounded_one(total) if number else -1 for total, number in zip(totals, occurs, strict=True)]
        most = max(raw, default=0)
        if most <= 0:
            return [MAX_NODE_SCORE] * len(raw), cells
        highest = most + min(each for each in raw if each >= 0)
        return [MAX_NODE_SCORE * (highest - each) // most if each >= 0 else 0 for each in raw], cells

    def score_of(self, pod: Pod, node_info: NodeInfo) -> int:
        """The node's score in `scores`. For constraints over host names, counts the matching pods of `node_info`."""
        if self.ignored is not None and self.ignored[node_info.row]:
            return 0
        total = 0.0
        for soft in self.constraints:
            value = node_info.node.labels.get(soft.constraint.topology_key)
            if value is not None:
                total += float(_count_in(soft, pod, node_info, value)) * soft.weight + float(
                    soft.constraint.max_skew - 1
                )
        return _rounded_one(total)


_MOST_COMBINATIONS: Final = 64
"""With more, arrays cost less than lists."""


def _rounded_one(total: float) -> int:
    """As `_rounded`."""
    whole = math.trunc(total)
    return whole + math.trunc((total - whole) * 2)


def _rounded(totals: Floats) -> Scores:
    """Halves away from zero, as in Go."""
    whole = np.trunc(totals)
    whole += np.trunc((totals - whole) * 2)
    return whole.astype(np.int64)


def _required(column: Counts | None) -> Counts:
    assert column is not None
    return column


def _count_in(soft: SoftConstraint, pod: Pod, node_info: NodeInfo, value: str) -> int:
    if soft.by_domain is not None:
        return int(soft.by_domain[soft.topology.code_of[value]])
    selector = soft.constraint.selector
    if selector.is_empty:
        return 0
    return sum(
        not other.terminating and other.namespace == pod.namespace and selector.matches(other.labels)
        for other in node_info.pods
    )


def count_soft(
    nodes: NodeList, pod: Pod, constraints: tuple[TopologySpreadConstraint, ...], *, needs_all_keys: bool
) -> SoftSpread:
    """Over all nodes of the snapshot. `nodes` passed the filters; weights depend on the number of domains among
    them."""
    snapshot = nodes.snapshot
    complete = _with_all_keys(snapshot, constraints) if needs_all_keys else None
    ignored = None if complete is None else ~complete
    scored = nodes.rows if complete is None else nodes.rows[complete[nodes.rows]]
    counted = (_count_soft(snapshot, pod, c, complete=complete, scored=scored) for c in constraints)
    return SoftSpread(tuple(counted), ignored)


def _count_soft(
    snapshot: Snapshot,
    pod: Pod,
    constraint: TopologySpreadConstraint,
    *,
    complete: Mask | None,
    scored: NDArray[np.intp],
) -> SoftConstraint:
    topology = snapshot.columns.labels.topology(constraint.topology_key)
    if constraint.topology_key == HOSTNAME_LABEL:
        pods = _pods_per_node(snapshot, pod.namespace, constraint.selector)
        return SoftConstraint(constraint, topology, _weight(len(scored)), None, pods)
    codes = _codes_with_missing_as_empty(topology)
    taking_part = _both(complete, _included(snapshot, pod, constraint))
    if taking_part is None and codes is topology.codes:
        by_domain = _pods_per_domain(snapshot, pod.namespace, constraint)
    else:
        pods = _pods_per_node(snapshot, pod.namespace, constraint.selector)
        by_domain = sum_by_code(codes, pods if taking_part is None else pods * taking_part, topology.missing + 1)
    return SoftConstraint(constraint, topology, _weight(_domains_among(scored, codes, topology)), by_domain, None)


def _domains_among(rows: NDArray[np.intp], codes: NDArray[np.intp], topology: Topology) -> int:
    """How many different values of the label key these rows have. No counting is needed if `rows` leaves out fewer
    nodes than the rarest value has: each value then still occurs."""
    if codes is topology.codes and len(codes) - len(rows) < topology.fewest:
        return topology.used
    return int(np.count_nonzero(np.bincount(codes[rows])))


def _codes_with_missing_as_empty(topology: Topology) -> NDArray[np.intp]:
    # The scheduler reads a missing label as "", so nodes without the key share a domain with nodes whose value
    # is empty.
    empty = topology.code_of.get("")
    return topology.codes if empty is None else np.where(topology.present, topology.codes, empty)


def _weight(domains: int) -> float:
    return math.log(domains + 2)
