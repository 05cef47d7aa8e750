"""The placed pods of a snapshot at one moment, indexed by node, class and affinity group.

A table never changes. Later changes of the pods are in a log (change_log.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.pods.affinity_groups import AffinityGroups
from scheduler_core.snapshot.pods.change_log import PodChange
from scheduler_core.snapshot.pods.pod_classes import PodClasses

Rows = NDArray[np.intp]

# Above so many classes one pass over all pods is quicker than gathering class by class (measured with 150,000 pods).
_MANY_CLASSES = 64

# `PodClasses` and `AffinityGroups` keep this many unused entries, because numbering again loses their cached answers.
_SPARE_ENTRIES = 64

_OF_16_BITS = 1 << 16


class Grouped:
    """An index of an array of keys: `members` returns the positions at which a key occurs."""

    __slots__ = ("_order", "_starts")

    def __init__(self, keys: NDArray[np.intp], size: int) -> None:
        # Numpy sorts 16 bits by radix, ten times faster than 64.
        self._order = np.argsort(keys.astype(np.uint16) if size <= _OF_16_BITS else keys, kind="stable")
        self._starts = np.concatenate(([0], np.bincount(keys, minlength=size).cumsum()))

    def members(self, key: int) -> Rows:
        if key + 1 >= len(self._starts):
            return self._order[:0]
        return self._order[self._starts[key] : self._starts[key + 1]]


class PodTable:
    """For the pod `pods[i]`, `rows[i]` is the row of its node, `classes[i]` the number of its class, `groups[i]`
    that of its affinity group."""

    def __init__(
        self,
        pods: Sequence[Pod],
        *,
        rows: Rows,
        classes: Rows,
        groups: Rows,
        kinds: PodClasses,
        affinities: AffinityGroups,
        node_count: int,
    ) -> None:
        self.pods = pods
        self.rows = rows
        self.classes = classes
        self.groups = groups
        self.kinds = kinds
        self.affinities = affinities
        self.node_count = node_count

    @classmethod
    def of(cls, pods: Sequence[Pod], row_of: Mapping[str, int], kinds: PodClasses, affinities: AffinityGroups) -> Self:
        """The node of each pod must be in `row_of`."""
        count = len(pods)
        rows = np.fromiter((row_of[pod.node_name] for pod in pods), dtype=np.intp, count=count)
        classes = np.fromiter((kinds.number_of(pod) for pod in pods), dtype=np.intp, count=count)
        groups = np.fromiter((affinities.number_of(pod.spec) for pod in pods), dtype=np.intp, count=count)
        return cls(
            pods, rows=rows, classes=classes, groups=groups, kinds=kinds, affinities=affinities, node_count=len(row_of)
        )

    def pods_after(self, changes: Iterable[PodChange]) -> list[Pod]:
        """The pods after these changes, in no particular order."""
        gone, come = self._sorted(changes)
        left = set(gone)
        stayed = [pod for index, pod in enumerate(self.pods) if index not in left] if left else list(self.pods)
        return stayed + [change.pod for change in come]

    def _sorted(self, changes: Iterable[PodChange]) -> tuple[list[int], list[PodChange]]:
        """The positions in the table from which pods are removed, and the changes that add a pod."""
        gone: set[int] = set()
        come: dict[str, PodChange] = {}
        for change in changes:
            if change.sign > 0:
                come[change.pod.key] = change
            elif change.pod.key in come:
                del come[change.pod.key]
            else:
                gone.add(self.index_of[change.pod.key])
        return sorted(gone), list(come.values())

    def with_changes(self, changes: Iterable[PodChange], node_count: int) -> Self:
        """The table after the changes, for `node_count` nodes. Remaining pods keep their position if possible. If
        many of the numbered classes or groups have no pods any more, the others get new numbers."""
        gone, come = self._sorted(changes)
        sources = _sources(len(self.pods), gone, len(come))

        def column(old: Rows, new: list[int]) -> Rows:
            return np.concatenate([old, np.array(new, dtype=np.intp)])[sources]

        pods, index_of = self._places(sources, gone, come)
        kinds, classes = self.kinds, column(self.classes, [c.class_number for c in come])
        affinities, groups = self.affinities, column(self.groups, [c.group for c in come])
        used = np.bincount(classes).nonzero()[0]
        if _has_many_unused(len(used), len(kinds)):
            kinds, classes = kinds.only(used.tolist()), np.searchsorted(used, classes)
        used = np.bincount(groups[groups >= 0]).nonzero()[0]
        if _has_many_unused(len(used), len(affinities)):
            affinities = affinities.only(used.tolist())
            groups = np.where(groups >= 0, np.searchsorted(used, groups), groups)
        new = type(self)(
            pods,
            rows=column(self.rows, [c.row for c in come]),
            classes=classes,
            groups=groups,
            kinds=kinds,
            affinities=affinities,
            node_count=node_count,
        )
        new.__dict__["index_of"] = index_of
        return new

    def _places(self, sources: Rows, gone: list[int], come: list[PodChange]) -> tuple[list[Pod], dict[str, int]]:
        """The pods at their new positions, and each pod's key with its position. Keeps the strings of existing keys:
        new copies would fragment the memory of a long-lived process."""
        index_of = dict(self.index_of)
        for index in gone:
            del index_of[self.pods[index].key]
        pods = [*self.pods[: len(sources)], *(change.pod for change in come[len(gone) :])]
        for index in np.flatnonzero(sources != np.arange(len(sources))).tolist():
            source = int(sources[index])
            pods[index] = self.pods[source] if source < len(self.pods) else come[source - len(self.pods)].pod
            index_of[pods[index].key] = index
        for index in range(len(self.pods), len(sources)):
            index_of[pods[index].key] = index
        return pods, index_of

    @cached_property
    def index_of(self) -> Mapping[str, int]:
        return {pod.key: index for index, pod in enumerate(self.pods)}

    @cached_property
    def _by_node(self) -> Grouped:
        return Grouped(self.rows, self.node_count)

    @cached_property
    def _by_class(self) -> Grouped:
        return Grouped(self.classes, len(self.kinds))

    @cached_property
    def _with_group(self) -> Rows:
        return np.flatnonzero(self.groups >= 0)

    @cached_property
    def _by_group(self) -> Grouped:
        return Grouped(self.groups[self._with_group], len(self.affinities))

    def on_node(self, row: int) -> list[Pod]:
        """In the table's order."""
        return [self.pods[index] for index in self._by_node.members(row)]

    def rows_of_classes(self, numbers: Sequence[int]) -> Rows:
        """The row of each pod of these classes; the row of a node with two such pods comes twice."""
        if len(numbers) == 1:
            return self.rows[self._by_class.members(numbers[0])]
        if len(numbers) < _MANY_CLASSES:
            return (
                self.rows[np.concatenate([self._by_class.members(number) for number in numbers])]
                if numbers
                else self.rows[:0]
            )
        wanted = np.zeros(len(self.kinds), dtype=bool)
        wanted[list(numbers)] = True
        return self.rows[wanted[self.classes]]

    def rows_of_group(self, number: int) -> Rows:
        """The row of each pod of this affinity group."""
        return self.rows[self._with_group[self._by_group.members(number)]]


def _sources(count: int, gone: list[int], come: int) -> Rows:
    """For each position of the new table, the position of its pod in the old one; for an added pod, a number after the
    old table's end.

    Added pods fill the positions of removed ones first, then pods from the end of the old table.
    """
    length = count - len(gone) + come
    sources = np.arange(length, dtype=np.intp)
    free = [index for index in gone if index < length]
    left = set(gone)
    from_behind = [index for index in range(length, count) if index not in left]
    added = range(count, count + come)
    if length > count:
        sources[count:] = added[len(gone) :]
    sources[free] = [*added, *from_behind][: len(free)] if length <= count else added[: len(gone)]
    return sources


def _has_many_unused(used: int, entries: int) -> bool:
    return entries > used + _SPARE_ENTRIES
