"""Groups pods into classes by what selectors read: namespace, labels, and whether the pod terminates.

Most pods are replicas with equal labels, so selectors are matched against classes. A class is never lost; `only`
returns another object without the unused ones. Derived snapshots share the object, because it does not depend on where
pods are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.model.labels import LabelSelector
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.remembered import Remembered

_ANSWERS: Final = 8192


@dataclass(frozen=True, slots=True)
class PodQuery:
    """Matches pods that match all `parts`: each a set of namespaces (None: all) and a selector.

    With `live_only`, terminating pods do not match.
    """

    parts: tuple[tuple[frozenset[str] | None, LabelSelector], ...]
    live_only: bool = False
    identity: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", hash((self.parts, self.live_only)))

    def __hash__(self) -> int:
        return self.identity

    def matches(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> bool:
        if self.live_only and terminating:
            return False
        return all(
            (namespaces is None or namespace in namespaces) and selector.matches(labels)
            for namespaces, selector in self.parts
        )


@dataclass(slots=True)
class _Answer:
    """The numbers of the classes that one query selects, as a set and ascending. Compared with the first `seen`
    classes only."""

    seen: int = 0
    found: set[int] = field(default_factory=set)
    ordered: list[int] = field(default_factory=list)


class PodClasses:
    """Numbers the classes in the order in which they appear, and finds those that a query selects. Selectors cannot
    tell the pods of a class apart."""

    def __init__(self) -> None:
        self._number: dict[tuple[str, tuple[tuple[str, str], ...], bool], int] = {}
        # By the id of the labels: most pods share their labels with the first pod of their class, and `_members` keeps
        # those labels.
        self._by_identity: dict[tuple[int, str, bool], int] = {}
        self._members: list[tuple[str, Mapping[str, str], bool]] = []
        self._by_pair: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._by_namespace: defaultdict[str, list[int]] = defaultdict(list)
        self._answers: Remembered[PodQuery, _Answer] = Remembered(_ANSWERS)

    def only(self, numbers: Iterable[int]) -> PodClasses:
        """Only these classes, numbered anew from 0 in the order of `numbers`."""
        new = PodClasses()
        for number in numbers:
            namespace, labels, terminating = self._members[number]
            new._add((namespace, tuple(sorted(labels.items())), terminating), labels)
        return new

    def __len__(self) -> int:
        return len(self._members)

    def number_of(self, pod: Pod) -> int:
        """A new class gets the next number."""
        known = self._by_identity.get((id(pod.labels), pod.namespace, pod.terminating))
        if known is not None:
            return known
        key = (pod.namespace, tuple(sorted(pod.labels.items())), pod.terminating)
        known = self._number.get(key)
        return known if known is not None else self._add(key, pod.labels)

    def _add(self, key: tuple[str, tuple[tuple[str, str], ...], bool], labels: Mapping[str, str]) -> int:
        number = self._number[key] = len(self._members)
        self._by_identity[id(labels), key[0], key[2]] = number
        self._members.append((key[0], labels, key[2]))
        self._by_namespace[key[0]].append(number)
        for pair in key[1]:
            self._by_pair[pair].append(number)
        return number

    def chosen(self, query: PodQuery) -> tuple[set[int], list[int]]:
        """The numbers of the classes that the query selects, as a set and ascending. The caller must not change
        them."""
        answer = self._answers.get(query)
        if answer is None:
            answer = self._answers[query] = _Answer()
        if answer.seen < len(self._members):
            for number in self._candidates(query, answer.seen):
                namespace, labels, terminating = self._members[number]
                if query.matches(namespace, labels, terminating=terminating):
                    answer.found.add(number)
                    answer.ordered.append(number)
            answer.seen = len(self._members)
        return answer.found, answer.ordered

    def _candidates(self, query: PodQuery, seen: int) -> list[int]:
        """The numbers, from `seen` on, of the classes that the query may select, found by the one of its indexed
        conditions (`key in (…)`, namespaces) that the fewest classes meet. Without an indexed condition, all numbers
        from `seen` on."""
        best: list[int] | None = None
        for namespaces, selector in query.parts:
            if selector.requirements is None:
                return []
            lists = [
                [self._by_pair.get((r.key, v), []) for v in r.values]
                for r in selector.requirements
                if r.operator == "In"
            ]
            if namespaces is not None:
                lists.append([self._by_namespace.get(namespace, []) for namespace in namespaces])
            for parts in lists:
                if best is None or sum(map(len, parts)) < len(best):
                    best = [number for part in parts for number in part]
        everything = range(len(self._members)) if best is None else best
        return (
            sorted({number for number in everything if number >= seen})
            if best is not None
            else list(range(seen, len(self._members)))
        )
