"""The displaced pods of one course, and which of them the scheduler tries next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.course_parts.displaced import Displaced, joined
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of, replacement_of


@dataclass(slots=True)
class PlacementQueue:
    """Every displaced pod by the key of the evicted pod, with or without a node, and the order in which pods are tried.

    The pods of `line` are next, in order. Then follow those of `pool`, in an order that is unknown.
    """

    displaced: dict[str, Displaced] = field(default_factory=dict)
    line: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    postponed: tuple[str, ...] = ()  # of the pool: those that come only after the evictions of the next round

    def copy(self) -> PlacementQueue:
        return replace(self, displaced=dict(self.displaced))

    # ---- pods that arrive ----

    def add(self, pod: Pod) -> str:
        """Adds the replacement of this pod, which needs a node; returns its key."""
        self.displaced[pod.key] = Displaced(pod, replacement_of(pod), len(self.displaced))
        return pod.key

    def add_next(self, pod: Pod) -> None:
        """Puts the replacement of this pod first."""
        self.line = (self.add(pod),)

    def add_pool(self, pods: Iterable[Pod]) -> None:
        """Adds the replacements of these pods, which appear in an unknown order."""
        self.pool = tuple(self.add(pod) for pod in pods)

    def add_waiting(self, pods: Iterable[Pod]) -> None:
        """Adds pods that had no node before the drain; they are tried now."""
        for pod in pods:
            self.displaced[pod.key] = Displaced(pod, pod, len(self.displaced), waited=True)
        self.line = self._who_waited

    def add_victim(self, victim: Pod, preemptions: int) -> None:
        """Adds the replacement of a preempted pod after the others in line. A victim that had just landed is the same
        displaced pod, at the end of the queue."""
        landed = (each for each in self.displaced.values() if each.landed and each.replacement.key == victim.key)
        known = next(landed, None)
        if known is not None:
            again = Displaced(known.pod, replacement_of(known.pod), len(self.displaced) + preemptions)
            self.displaced[known.pod.key] = again
            self.line = (*self.line, known.pod.key)
        elif recreation_of(victim) in (Recreation.AT_ONCE, Recreation.AFTER_IT_IS_GONE):
            self.line = (*self.line, self.add(victim))

    def begin_round(self, gone: Iterable[Pod]) -> None:
        """Handles the end of pods on the node: pods without a node are tried again, and the replacements of `gone`
        appear."""
        retried = [each.pod.key for each in self.waiting]  # the postponed among them
        self.postponed = ()
        self.pool = (*retried, *(self.add(pod) for pod in gone))
        self.line = self._who_waited  # they have waited in the queue for longer

    # ---- pods that are tried ----

    def take(self, key: str) -> None:
        """Tries this pod of the pool next."""
        self.pool = tuple(other for other in self.pool if other != key)
        self.line = (key,)

    def postpone(self) -> None:
        """Moves the pool behind the evictions of the next round."""
        self.pool, self.postponed = (), self.pool

    def tried(self, each: Displaced) -> None:
        """Records this outcome for the first of the line."""
        self.displaced[each.pod.key] = each
        self.line = self.line[1:]

    def drop_alike(self, each: Displaced) -> None:
        """Removes pods of its kind from the line, because they would get the same answer."""
        self.line = tuple(key for key in self.line if self.displaced[key].kind != each.kind)

    @property
    def open_kinds(self) -> tuple[str, ...]:
        """The first pod of each kind in the pool."""
        kinds = {self.displaced[key].kind: key for key in reversed(self.pool)}
        return tuple(reversed(kinds.values()))

    # ---- pods without a node ----

    @property
    def waiting(self) -> list[Displaced]:
        """The displaced pods without a node, in the queue's order: priority, then arrival."""
        found = (each for each in self.displaced.values() if not (each.landed or each.waited))
        return sorted(found, key=_in_order)

    @property
    def _who_waited(self) -> tuple[str, ...]:
        found = (each for each in self.displaced.values() if each.waited and not each.landed)
        return tuple(each.pod.key for each in sorted(found, key=_in_order))

    # ---- alike ----

    @property
    def likeness(self) -> Hashable:
        """Equal if the same kinds of pods are on the same nodes and wait in the same order."""
        landed = Counter((each.kind, each.replacement.node_name) for each in self.displaced.values() if each.landed)
        return (
            frozenset(landed.items()),
            tuple(each.kind for each in self.waiting),
            tuple(self.displaced[key].kind for key in self.line),
            tuple(self.displaced[key].kind for key in self.pool),
            len(self.postponed),
        )

    def absorb(self, other: PlacementQueue, weights: tuple[float, float], *, is_theirs: bool) -> None:
        """Adds the results of an equivalent queue for its pods; see `joined`."""
        theirs: dict[Hashable, list[Displaced]] = {}
        for each in other.displaced.values():
            theirs.setdefault((each.kind, each.replacement.node_name), []).append(each)
        mine, their = weights
        for key, each in self.displaced.items():
            twin = theirs[each.kind, each.replacement.node_name].pop()
            self.displaced[key] = joined(each, mine, twin, their, is_theirs=is_theirs)


def _in_order(each: Displaced) -> tuple[int, int]:
    return -each.pod.priority, each.arrival
