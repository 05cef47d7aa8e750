"""An indexed log of the pods that were added to or removed from nodes since the table of pods (pod_table.py) was made.

Logs only grow. Several `Placements` share one, and each reads only up to its own length; later entries belong to
others. A second object derived from the same placements gets a new log that begins with the same entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.pods.affinity_groups import NO_GROUP
from scheduler_core.values import Value


class PodChange(Value, eq=False, gc=False):
    """A pod that was added to a node (`sign` 1) or removed from it (−1). `class_number` and `group` are the numbers
    of its class and its affinity group. `replaced`: the pod whose place it took, if counts cannot tell the two apart
    (`count_alike`)."""

    sign: int
    row: int
    pod: Pod
    class_number: int
    group: int
    replaced: Pod | None = None


def count_alike(one: Pod, other: Pod) -> bool:
    """Whether they are the same pod with the same labels, spec and resize, such as before and after it became ready."""
    return (
        one.spec is other.spec
        and one.labels == other.labels
        and one.resize is other.resize
        and one.terminating == other.terminating
        and one.name == other.name
        and one.namespace == other.namespace
    )


# With this many chained logs a lookup is slower than copying them into one.
_DEEPEST: Final = 8


class ChangeLog:
    """Changes, with indexes by pod, row, class and affinity group.

    The first `_start` changes are in the earlier log `_before`.
    """

    __slots__ = ("_all", "_before", "_depth", "_of_class", "_of_group", "_of_pod", "_of_row", "_start")

    def __init__(self, changes: Iterable[PodChange] = (), *, before: ChangeLog | None = None, start: int = 0) -> None:
        self._before = before
        self._start = start
        self._depth: int = 0 if before is None else before._depth + 1
        self._all: list[PodChange] = []
        self._of_pod: defaultdict[str, list[int]] = defaultdict(list)
        self._of_row: defaultdict[int, list[int]] = defaultdict(list)
        self._of_class: defaultdict[int, list[int]] = defaultdict(list)
        self._of_group: defaultdict[int, list[int]] = defaultdict(list)
        for change in changes:
            self.append(change)

    def __len__(self) -> int:
        return self._start + len(self._all)

    def append(self, change: PodChange) -> None:
        place = self._start + len(self._all)
        self._all.append(change)
        self._of_pod[change.pod.key].append(place)
        self._of_row[change.row].append(place)
        if change.replaced is not None:
            return
        self._of_class[change.class_number].append(place)
        if change.group != NO_GROUP:
            self._of_group[change.group].append(place)

    def up_to(self, length: int) -> ChangeLog:
        """A new log with exactly the first `length` changes. Changes that are added later to one do not appear in
        the other."""
        if self._before is not None and length <= self._start:
            return self._before.up_to(length)
        if self._depth >= _DEEPEST:
            return ChangeLog(self.between(0, length))
        return ChangeLog(before=self, start=length)

    def last_of_pod(self, key: str, length: int) -> PodChange | None:
        """The last change of this pod among the first `length`; None if there is none."""
        found = self._last(self._of_pod.get(key), length)
        if found is not None or self._before is None:
            return found
        return self._before.last_of_pod(key, min(length, self._start))

    def last_of_row(self, row: int, length: int) -> PodChange | None:
        """The last change in this row among the first `length`; None if there is none."""
        found = self._last(self._of_row.get(row), length)
        if found is not None or self._before is None:
            return found
        return self._before.last_of_row(row, min(length, self._start))

    def _last(self, places: list[int] | None, length: int) -> PodChange | None:
        if places is None:
            return None
        before = len(places) if places[-1] < length else bisect_left(places, length)
        return self._all[places[before - 1] - self._start] if before else None

    def of_row(self, row: int, length: int) -> list[PodChange]:
        """The changes in this row among the first `length`."""
        earlier = [] if self._before is None else self._before.of_row(row, min(length, self._start))
        return earlier + self._between(self._of_row, (row,), 0, length)

    def _between(
        self, index: Mapping[int, list[int]], wanted: Collection[int], start: int, end: int
    ) -> list[PodChange]:
        found: list[PodChange] = []
        every, offset = self._all, self._start
        for key in wanted:
            places = index.get(key)
            if places is not None and places[-1] >= start:
                found += [every[at - offset] for at in places[bisect_left(places, start) : bisect_left(places, end)]]
        return found

    def of_classes(self, numbers: Collection[int], start: int, end: int) -> list[PodChange]:
        """The changes of pods of these classes at the positions `start` to `end` − 1, in no particular order."""
        if start >= self._start:
            return self._between(self._of_class, numbers, start, end)
        earlier: list[PodChange] = []
        if self._before is not None:
            earlier = self._before.of_classes(numbers, start, min(end, self._start))
        return earlier + self._between(self._of_class, numbers, start, end)

    def of_groups(self, numbers: Collection[int], start: int, end: int) -> list[PodChange]:
        """The changes of pods of these affinity groups at the positions `start` to `end` − 1, in no particular
        order."""
        earlier: list[PodChange] = []
        if self._before is not None and start < self._start:
            earlier = self._before.of_groups(numbers, start, min(end, self._start))
        return earlier + self._between(self._of_group, numbers, start, end)

    def between(self, start: int, end: int) -> list[PodChange]:
        """The changes at the positions `start` to `end` − 1, in order."""
        if start >= self._start:
            return self._all[start - self._start : end - self._start]
        earlier = [] if self._before is None else self._before.between(start, min(end, self._start))
        return earlier + self._all[: max(end - self._start, 0)]


class Changes(Value):
    """The changes at the positions `start` to `end` − 1 of a log, such as those that a cached count does not include
    yet."""

    log: ChangeLog
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __iter__(self) -> Iterator[PodChange]:
        """A pod that took another one's place comes after the removal of that one."""
        for change in self.log.between(self.start, self.end):
            if change.replaced is not None:
                yield PodChange(-1, change.row, change.replaced, change.class_number, change.group)
            yield change

    def counted(self) -> list[PodChange]:
        """Without the pods that took the place of one that counts alike."""
        return [change for change in self.log.between(self.start, self.end) if change.replaced is None]

    def of_classes(self, numbers: Collection[int]) -> list[PodChange]:
        """The changes in the number of pods of these classes, in no particular order."""
        if len(numbers) > len(self):
            return [change for change in self.counted() if change.class_number in numbers]
        return self.log.of_classes(numbers, self.start, self.end)

    def of_groups(self, numbers: Collection[int]) -> list[PodChange]:
        """The changes in the number of pods of these affinity groups, in no particular order."""
        if len(numbers) > len(self):
            return [change for change in self.counted() if change.group in numbers]
        return self.log.of_groups(numbers, self.start, self.end)
