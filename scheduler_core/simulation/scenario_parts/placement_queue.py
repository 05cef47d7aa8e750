"""The displaced pods of one scenario, and the order in which the scheduler tries to place them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of, replacement_of
from scheduler_core.simulation.scenario_parts.displaced import Displaced, joined


@dataclass(slots=True)
class PlacementQueue:
    """The displaced pods by the key of the evicted pod. The scheduler tries their replacements first in the order of
    `line`, then those in `pool` in an unknown order."""

    displaced: dict[str, Displaced] = field(default_factory=dict)
    line: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    postponed: tuple[str, ...] = ()  # pods of the pool that wait for the end of the next round

    def copy(self) -> PlacementQueue:
        return replace(self, displaced=dict(self.displaced))

    # ---- pods that arrive ----

    def add(self, pod: Pod) -> str:
        """Adds the replacement of the evicted pod, and returns the key of the evicted pod."""
        self.displaced[pod.key] = Displaced(pod, replacement_of(pod), len(self.displaced))
        return pod.key

    def add_next(self, pod: Pod) -> None:
        """The replacement is the next that the scheduler tries."""
        self.line = (self.add(pod),)

    def add_pool(self, pods: Iterable[Pod]) -> None:
        """It is unknown which of these replacements appears first."""
        self.pool = tuple(self.add(pod) for pod in pods)

    def add_waiting(self, pods: Iterable[Pod]) -> None:
        """Adds pods that had no node before the drain. The scheduler tries them next."""
        for pod in pods:
            self.displaced[pod.key] = Displaced(pod, pod, len(self.displaced), waited=True)
        self.line = self._who_waited

    def add_victim(self, victim: Pod, preemptions: int) -> None:
        """After the preemption of `victim`: if it replaces a displaced pod, that one joins the end of the line again
        with a new replacement; otherwise the victim's own replacement does. Neither for a victim without a controller,
        or of a Job or DaemonSet."""
        landed = (each for each in self.displaced.values() if each.landed and each.replacement.key == victim.key)
        known = next(landed, None)
        if known is not None:
            again = Displaced(known.pod, replacement_of(known.pod), len(self.displaced) + preemptions)
            self.displaced[known.pod.key] = again
            self.line = (*self.line, known.pod.key)
        elif recreation_of(victim) in (Recreation.AT_ONCE, Recreation.AFTER_IT_IS_GONE):
            self.line = (*self.line, self.add(victim))

    def begin_round(self, gone: Iterable[Pod]) -> None:
        """The evicted pods `gone` have ended: their replacements appear. Pods without a node are tried again."""
        retried = [each.pod.key for each in self.waiting]  # includes the postponed pods
        self.postponed = ()
        self.pool = (*retried, *(self.add(pod) for pod in gone))
        self.line = self._who_waited  # the pods that were pending before the drain

    # ---- pods that are tried ----

    def take(self, key: str) -> None:
        """Makes this pod of the pool the next that the scheduler tries."""
        self.pool = tuple(other for other in self.pool if other != key)
        self.line = (key,)

    def postpone(self) -> None:
        """Empties the pool: its pods are tried after the next round of evictions."""
        self.pool, self.postponed = (), self.pool

    def tried(self, each: Displaced) -> None:
        """Removes the first pod from the line, and records whether it found a node."""
        self.displaced[each.pod.key] = each
        self.line = self.line[1:]

    def drop_alike(self, each: Displaced) -> None:
        """Removes the pods of this kind from the line: the scheduler would refuse them as well."""
        self.line = tuple(key for key in self.line if self.displaced[key].kind != each.kind)

    @property
    def open_kinds(self) -> tuple[str, ...]:
        """The keys of the pods of the pool that may be next, the first of each kind."""
        kinds = {self.displaced[key].kind: key for key in reversed(self.pool)}
        return tuple(reversed(kinds.values()))

    # ---- pods without a node ----

    @property
    def waiting(self) -> list[Displaced]:
        """The displaced pods without a node by priority, highest first, and arrival; not those that had none before
        the drain."""
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
        """Adds the results of an equivalent scenario's queue. `weights` are the probabilities of both scenarios;
        `is_theirs`: the other one is the main scenario."""
        theirs: dict[Hashable, list[Displaced]] = {}
        for each in other.displaced.values():
            theirs.setdefault((each.kind, each.replacement.node_name), []).append(each)
        mine, their = weights
        for key, each in self.displaced.items():
            twin = theirs[each.kind, each.replacement.node_name].pop()
            self.displaced[key] = joined(each, mine, twin, their, is_theirs=is_theirs)


def _in_order(each: Displaced) -> tuple[int, int]:
    return -each.pod.priority, each.arrival
