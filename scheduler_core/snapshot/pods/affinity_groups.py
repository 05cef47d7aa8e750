"""Groups pods by their affinity terms, and finds the terms that select an incoming pod.

Terms of existing pods affect incoming ones: required anti-affinity refuses nodes, the others add to scores. Pods with
equal terms form a group, and an incoming pod is matched once per group instead of once per pod. The result is kept for
incoming pods with the same namespace, namespace labels and labels.

A group is never removed; `only` returns another object without the unused groups.
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
    """What decides which terms of existing pods select an incoming pod. Both label lists are sorted."""

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
    """The terms that match one incoming pod. `seen` is how many groups have been checked."""

    seen: int = 0
    pulls: dict[int, tuple[tuple[Kind, str, int], ...]] = field(default_factory=dict)


class AffinityGroups:
    """Numbers the groups in the order in which they appear, and finds the terms that select an incoming pod."""

    def __init__(self) -> None:
        self._number_by_spec: WeakKeyDictionary[PodSpec, int] = WeakKeyDictionary()
        self._last: tuple[PodSpec | None, int] = (None, NO_GROUP)
        self._number: dict[tuple[PodAffinity, PodAffinity], int] = {}
        self._members: list[tuple[PodAffinity, PodAffinity]] = []
        self._by_pair: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._unindexed: list[int] = []
        self._matched: Remembered[IncomingPod, _Matched] = Remembered(_MOST_INCOMING)

    def only(self, numbers: Iterable[int]) -> AffinityGroups:
        """Only these groups, numbered anew from 0 in the order of `numbers`."""
        new = AffinityGroups()
        for number in numbers:
            new._number_terms(*self._members[number])
        return new

    def __len__(self) -> int:
        return len(self._members)

    def number_of(self, spec: PodSpec) -> int:
        """The number of the group of pods with this spec; a new group gets the next one. `NO_GROUP` for a spec
        without pod affinity and anti-affinity."""
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
        """By group, the terms (kind, topology key, weight) that select the incoming pod; groups without one are left
        out. Required terms have the weight 1, because their real one is configured (hardPodAffinityWeight); that of
        preferred anti-affinity is negative."""
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
    """Labels (key, value) such that every pod that one of `terms` selects has at least one of them; with None if a
    term requires no particular label."""
    pairs: set[tuple[str, str] | None] = set()
    for term in terms:
        if term.selector.requirements is None:
            continue
        demanded = next((r for r in term.selector.requirements if r.operator == "In"), None)
        pairs.update({None} if demanded is None else {(demanded.key, value) for value in demanded.values})
    return pairs
