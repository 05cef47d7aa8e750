"""The pods that affinity terms select, per topology domain, for InterPodAffinity.

Source: plugins/interpodaffinity/{filtering,scoring,plugin}.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores
from scheduler_core.model.pod import Pod, PodAffinityTerm
from scheduler_core.snapshot.node_labels import Topology
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.affinity_groups import IncomingPod
from scheduler_core.snapshot.pods.pod_classes import PodQuery
from scheduler_core.snapshot.pods.tallies import Counts, DomainTally, Pull, PullsByKey, PullTally
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Labels = Mapping[str, str]


class Reach(Value):
    """The namespaces that an affinity term of an incoming pod selects in this snapshot.

    With `negative_selectors_reach_all`, a namespaceSelector that matches a namespace without labels (NotIn,
    DoesNotExist) selects every namespace, as since 1.34 by a regression of #132457.
    """

    snapshot: Snapshot
    negative_selectors_reach_all: bool

    def namespaces(self, term: PodAffinityTerm) -> frozenset[str] | None:
        """None means every namespace."""
        selector = term.namespace_selector
        if selector.requirements is None:
            return term.namespaces
        if selector.is_empty or (self.negative_selectors_reach_all and selector.matches({})):
            return None
        return term.namespaces | self.snapshot.namespaces_selected(selector)

    def query(self, terms: tuple[PodAffinityTerm, ...]) -> PodQuery:
        """The pods that match all of these terms."""
        return _query(tuple((self.namespaces(term), term) for term in terms))

    def incoming(self, pod: Pod) -> IncomingPod:
        """What decides which affinity terms of existing pods select the incoming pod."""
        return self.snapshot.remember(
            ("incoming", pod.namespace, tuple(pod.labels.items())), lambda: self._incoming(pod)
        )

    def pulls_on(self, pod: Pod) -> PullsByKey:
        """How many affinity terms of placed pods select the incoming pod, as `PullTally` counts them."""
        incoming = self.incoming(pod)
        if not self.snapshot.placements.table.affinities.pulls_on(incoming):
            return {}
        return self.snapshot.tally(PullTally(incoming))

    def _incoming(self, pod: Pod) -> IncomingPod:
        labels = self.snapshot.objects.namespace_labels(pod.namespace)
        return IncomingPod(pod.namespace, tuple(sorted(labels.items())), tuple(sorted(pod.labels.items())))


@lru_cache(maxsize=4096)
def _query(parts: tuple[tuple[frozenset[str] | None, PodAffinityTerm], ...]) -> PodQuery:
    return PodQuery(tuple((namespaces, term.selector) for namespaces, term in parts))


class DomainCount(Value, eq=False):
    """Pods per domain of a topology key. The last element of `counts` is for nodes without the key, which are in no
    domain."""

    topology: Topology
    counts: Counts

    def at(self, labels: Labels) -> int:
        """The count in the domain of a node with these labels; 0 if it is in no domain."""
        code = self.topology.code_of.get(labels.get(self.topology.key, ""), -1) if self.topology.key in labels else -1
        return 0 if code < 0 else int(self.counts[code])

    @property
    def rows(self) -> Mask:
        """For each node, whether the count in its domain is above zero."""
        is_used = self.counts > 0
        is_used[-1] = False
        return self.topology.of_nodes(is_used)

    @property
    def is_empty(self) -> bool:
        return not np.logical_or.reduce(self.counts[:-1])

    def plus(self, row: int, sign: int) -> DomainCount:
        counts = self.counts.copy()
        counts[self.topology.codes[row]] += sign
        return DomainCount(self.topology, counts)


class AffinityCounts(Value, eq=False):
    """What InterPodAffinity's filter reads, per domain.

    `near`: for the key of each required affinity term, the pods that match all of these terms. `off`: for each required
    anti-affinity term, the pods that it selects. `keeps_off`: for each key, the anti-affinity terms of existing pods
    that select the incoming pod.
    """

    reach: Reach
    near: tuple[DomainCount, ...]
    near_query: PodQuery | None
    off: tuple[tuple[DomainCount, PodQuery], ...]
    keeps_off: Mapping[str, DomainCount]
    is_first_of_its_kind: bool

    def near_enough(self, labels: Labels) -> bool:
        """Whether a node with these labels has the topology key of every required affinity term, and in each of these
        domains a pod that matches all terms. If no domain has such a pod, but the incoming pod itself matches all
        terms, the keys are enough."""
        if any(count.topology.key not in labels for count in self.near):
            return False
        return all(count.at(labels) > 0 for count in self.near) or self._may_be_first

    @property
    def _may_be_first(self) -> bool:
        return self.is_first_of_its_kind and all(count.is_empty for count in self.near)

    def rows_near_enough(self, size: int) -> Mask:
        passes = np.ones(size, dtype=bool)
        for count in self.near:
            passes &= count.topology.present if self._may_be_first else count.rows
        return passes

    def too_near(self, labels: Labels) -> bool:
        return any(count.at(labels) > 0 for count, _ in self.off)

    @property
    def rows_too_near(self) -> Mask:
        return reduce(np.logical_or, (count.rows for count, _ in self.off))

    def unwanted(self, labels: Labels) -> bool:
        return any(count.at(labels) > 0 for count in self.keeps_off.values())

    @property
    def rows_unwanted(self) -> Mask:
        return reduce(np.logical_or, (count.rows for count in self.keeps_off.values()))

    def changed(self, pod: Pod, other: Pod, row: int, sign: int) -> AffinityCounts:
        """After `other` was added to the node (`sign` 1) or removed (-1)."""

        def chosen(query: PodQuery) -> bool:
            return query.matches(other.namespace, other.labels, terminating=False)

        near = (
            tuple(count.plus(row, sign) for count in self.near)
            if self.near_query is not None and chosen(self.near_query)
            else self.near
        )
        off = tuple((count.plus(row, sign) if chosen(query) else count, query) for count, query in self.off)
        keeps_off = dict(self.keeps_off)
        snapshot = self.reach.snapshot
        for term in other.spec.pod_anti_affinity.required:
            if term.matches(pod.namespace, pod.labels, snapshot.objects.namespace_labels(pod.namespace)):
                known = keeps_off.get(term.topology_key) or _nobody(snapshot, term.topology_key)
                keeps_off[term.topology_key] = known.plus(row, sign)
        return replace(self, near=near, off=off, keeps_off=keeps_off)


def _nobody(snapshot: Snapshot, key: str) -> DomainCount:
    topology = snapshot.columns.labels.topology(key)
    return DomainCount(topology, np.zeros(topology.missing + 1, dtype=np.int32))


def count_required(reach: Reach, pod: Pod, pulls: PullsByKey) -> AffinityCounts | None:
    """`pulls`: see `Reach.pulls_on`. None if no required term of the pod or of an existing pod concerns the pod."""
    affinity, anti_affinity = pod.spec.pod_affinity.required, pod.spec.pod_anti_affinity.required
    keeps_off = _kept_off(reach, pulls) if pulls else {}
    if not affinity and not anti_affinity and not keeps_off:
        return None
    near_query = reach.query(affinity) if affinity else None
    return AffinityCounts(
        reach=reach,
        near=() if near_query is None else tuple(_by_domain(reach, near_query, term.topology_key) for term in affinity),
        near_query=near_query,
        off=tuple(
            (_by_domain(reach, query, term.topology_key), query)
            for term, query in ((t, reach.query((t,))) for t in anti_affinity)
        ),
        keeps_off=keeps_off,
        is_first_of_its_kind=near_query is not None
        and near_query.matches(pod.namespace, pod.labels, terminating=False),
    )


def _kept_off(reach: Reach, pulls: PullsByKey) -> Mapping[str, DomainCount]:
    labels = reach.snapshot.columns.labels
    terms = {key: pull.terms for (kind, key), pull in pulls.items() if kind == "keeps off"}
    counts = {key: DomainCount(labels.topology(key), each) for key, each in terms.items()}
    return {key: count for key, count in counts.items() if not count.is_empty}


def _by_domain(reach: Reach, query: PodQuery, key: str) -> DomainCount:
    return DomainCount(reach.snapshot.columns.labels.topology(key), reach.snapshot.tally(DomainTally(query, key)))


class AffinityPull(Value, eq=False):
    """What InterPodAffinity's score reads: for each topology key, the sum of the terms' weights in each domain."""

    by_key: tuple[tuple[Topology, Ints], ...]

    def at(self, labels: Labels) -> int:
        """The sum of the weights in the domains of a node with these labels."""
        return sum(
            int(weights[topology.code_of[labels[topology.key]]])
            for topology, weights in self.by_key
            if topology.key in labels
        )

    def scores(self, nodes: NodeList) -> Scores:
        columns = (nodes.take(topology.of_nodes(weights)) for topology, weights in self.by_key)
        total: Scores = reduce(np.add, columns)
        return total


def count_scores(reach: Reach, pod: Pod, pulls_on_pod: PullsByKey, hard_weight: int) -> AffinityPull | None:
    """`pulls_on_pod`: see `Reach.pulls_on`. None if no term connects the pod with an existing pod on a node that has
    the term's key."""
    found: dict[str, list[tuple[int, Pull]]] = {}
    weight_of = {"keeps off": 0, "required": hard_weight, "preferred": 1}
    for (kind, key), pull in pulls_on_pod.items():
        if weight_of[kind] > 0:
            found.setdefault(key, []).append((weight_of[kind], pull))
    own = [(w.weight, w.term) for w in pod.spec.pod_affinity.preferred] + [
        (-w.weight, w.term) for w in pod.spec.pod_anti_affinity.preferred
    ]
    for weight, term in own:
        counts = _by_domain(reach, reach.query((term,)), term.topology_key).counts
        found.setdefault(term.topology_key, []).append((weight, Pull(counts, counts)))
    if not any(np.logical_or.reduce(pull.terms[:-1]) for pulls in found.values() for _, pull in pulls):
        return None
    return AffinityPull(
        tuple((reach.snapshot.columns.labels.topology(key), _weighed(pulls)) for key, pulls in found.items())
    )


def _weighed(pulls: list[tuple[int, Pull]]) -> Ints:
    """Sums by domain of `pulls`, each multiplied by its factor. The last element, for nodes without the key, is 0."""
    total = np.zeros(len(pulls[0][1].weights), dtype=np.int64)
    for factor, pull in pulls:
        total += pull.weights if factor == 1 else np.multiply(pull.weights, factor, dtype=np.int64)
    total[-1] = 0
    return total
