"""Groups pods by their affinity terms, and finds the terms that select a given incoming pod.

Terms of existing pods affect incoming pods: required anti-affinity refuses nodes, and the other terms add to scores.
Pods with equal terms form a group. An incoming pod is matched against the terms once for each group, not once for each
existing pod. The result is kept for later incoming pods with the same namespace, namespace labels and labels.

An `AffinityGroups` object never removes a group; its method `only` returns another object without the unused groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from weakref import WeakKeyDictionary

from scheduler_core.model.pod import PodAffinity, PodAffinityTerm, PodSpec
from scheduler_core.snapshot.remembered import Remembered

NO_GROUP: Final = -1
_MOST_INCOMING: Final = 8192


@dataclass(frozen=True, slots=True)
class IncomingPod:
    """The properties of an incoming pod that decide which affinity terms of existing pods select it: its namespace, the
    labels of its namespace, and its own labels. Both label lists are sorted."""

    namespace: str
    namespace_labels: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    identity: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", hash((self.namespace, self.namespace_labels, self.labels)))

    def __hash__(self) -> int:
        return self.identity


Kind = Literal["keeps off", "required", "preferred"]
# By group: the kind, the topology key and the weight of each term that selects an incoming pod.
Pulls = Mapping[int, tuple[tuple[Kind, str, int], ...]]


@dataclass(slots=True)
class _Matched:
    """The affinity terms that match one incoming pod. `seen` is the number of groups whose terms have been checked."""

    seen: int = 0
    pulls: dict[int, tuple[tuple[Kind, str, int], ...]] = field(default_factory=dict)


class AffinityGroups:
    """Numbers the groups of pods with equal affinity terms, in the order in which the groups appear. Finds the terms
    that select an incoming pod."""

    def __init__(self) -> None:
        self._number_by_spec: WeakKeyDictionary[PodSpec, int] = WeakKeyDictionary()
        self._last: tuple[PodSpec | None, int] = (None, NO_GROUP)
        self._number: dict[tuple[PodAffinity, PodAffinity], int] = {}
        self._members: list[tuple[PodAffinity, PodAffinity]] = []
        self._by_pair: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._unindexed: list[int] = []
        self._matched: Remembered[IncomingPod, _Matched] = Remembered(_MOST_INCOMING)

    def only(self, numbers: Iterable[int]) -> AffinityGroups:
        """Returns an `AffinityGroups` with only these groups. The groups get new numbers from 0 on, in the order of
        `numbers`."""
        new = AffinityGroups()
        for number in numbers:
            new._number_terms(*self._members[number])
        return new

    def __len__(self) -> int:
        return len(self._members)

    def number_of(self, spec: PodSpec) -> int:
        """Returns the number that identifies the group of pods with this spec: 0 for the first group, 1 for the second,
        and so on. A new group gets the next number. Returns `NO_GROUP` if the spec has neither pod affinity nor pod
        anti-affinity."""
        if spec is not self._last[0]:  # a pod's changes come one after another, and share its spec
            self._last = (spec, self._find_number(spec))
        return self._last[1]

    def _find_number(self, spec: PodSpec) -> int:
        if not spec.pod_affinity and not spec.pod_anti_affinity:
            return NO_GROUP
        known = self._number_by_spec.get(spec)
        if known is None:
            known = self._number_by_spec[spec] = self._number_terms(spec.pod_affinity, spec.pod_anti_affinity)
        return known

    def _number_terms(self, affinity: PodAffinity, anti_affinity: PodAffinity) -> int:
        key = (affinity, anti_affinity)
        if key not in self._number:
            number = self._number[key] = len(self._members)
            self._members.append(key)
            for pair in _pairs_that_could_match(term for _, term, _ in _weighed_terms(affinity, anti_affinity)):
                (self._unindexed if pair is None else self._by_pair[pair]).append(number)
        return self._number[key]

    def pulls_on(self, incoming: IncomingPod) -> Pulls:
        """Finds the terms that select the incoming pod. Returns a mapping from the number of a group (see `number_of`)
        to the terms of this group that select the pod. Leaves out groups without such a term. Each term is a tuple
        (kind, topology key, weight). Required terms have the weight 1, because their real weight is set in the
        scheduler's configuration (hardPodAffinityWeight). Preferred anti-affinity has a negative weight."""
        matched = self._matched.get(incoming)
        if matched is None:
            matched = self._matched[incoming] = _Matched()
        if matched.seen < len(self._members):
            labels, namespace_labels = dict(incoming.labels), dict(incoming.namespace_labels)
            for number in self._candidates(incoming, matched.seen):
                found = tuple(
                    (kind, term.topology_key, weight)
                    for kind, term, weight in _weighed_terms(*self._members[number])
                    if term.matches(incoming.namespace, labels, namespace_labels)
                )
                if found:
                    matched.pulls[number] = found
            matched.seen = len(self._members)
        return matched.pulls

    def _candidates(self, incoming: IncomingPod, seen: int) -> list[int]:
        found = {number for pair in incoming.labels for number in self._by_pair.get(pair, ()) if number >= seen}
        found.update(number for number in self._unindexed if number >= seen)
        return sorted(found)


def _weighed_terms(affinity: PodAffinity, anti_affinity: PodAffinity) -> Iterator[tuple[Kind, PodAffinityTerm, int]]:
    yield from (("keeps off", term, 1) for term in anti_affinity.required)
    yield from (("required", term, 1) for term in affinity.required)
    yield from (("preferred", each.term, each.weight) for each in affinity.preferred)
    yield from (("preferred", each.term, -each.weight) for each in anti_affinity.preferred)


def _pairs_that_could_match(terms: Iterable[PodAffinityTerm]) -> set[tuple[str, str] | None]:
    """Returns labels as pairs (key, value). Every incoming pod that one of `terms` selects has at least one of these
    labels. If a term requires no particular label, the set also contains None, because any pod may then match."""
    pairs: set[tuple[str, str] | None] = set()
    for term in terms:
        if term.selector.requirements is None:
            continue
        demanded = next((r for r in term.selector.requirements if r.operator == "In"), None)
        pairs.update({None} if demanded is None else {(demanded.key, value) for value in demanded.values})
    return pairs
