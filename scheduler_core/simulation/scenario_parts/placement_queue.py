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
    """The displaced pods of one scenario, by the key of the evicted pod, and the order in which the scheduler tries to
    place their replacements.

    First the scheduler tries the pods in `line`, in this order. Then it tries the pods in `pool`, in an unknown order.
    """

    displaced: dict[str, Displaced] = field(default_factory=dict)
    line: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    postponed: tuple[str, ...] = ()  # pods of the pool that wait for the end of the next round

    def copy(self) -> PlacementQueue:
        return replace(self, displaced=dict(self.displaced))

    # ---- pods that arrive ----

    def add(self, pod: Pod) -> str:
        """Adds the replacement of the evicted pod to the displaced pods. Returns the key of the evicted pod."""
        self.displaced[pod.key] = Displaced(pod, replacement_of(pod), len(self.displaced))
        return pod.key

    def add_next(self, pod: Pod) -> None:
        """Adds the replacement of the evicted pod, and makes it the next pod that the scheduler tries to place."""
        self.line = (self.add(pod),)

    def add_pool(self, pods: Iterable[Pod]) -> None:
        """Adds the replacements of these evicted pods to the pool (the pods without a known order), because it is
        unknown which replacement appears first."""
        self.pool = tuple(self.add(pod) for pod in pods)

    def add_waiting(self, pods: Iterable[Pod]) -> None:
        """Adds pods that had no node before the drain. The scheduler tries to place these pods next."""
        for pod in pods:
            self.displaced[pod.key] = Displaced(pod, pod, len(self.displaced), waited=True)
        self.line = self._who_waited

    def add_victim(self, victim: Pod, preemptions: int) -> None:
        """Handles the preemption of the pod `victim`. If the victim is the replacement of a displaced pod, puts this
        displaced pod at the end of the line again, with a new replacement. Otherwise adds a replacement of the victim
        at the end of the line. Adds nothing for a victim without a controller, or with a Job or DaemonSet as its
        controller."""
        landed = (each for each in self.displaced.values() if each.landed and each.replacement.key == victim.key)
        known = next(landed, None)
        if known is not None:
            again = Displaced(known.pod, replacement_of(known.pod), len(self.displaced) + preemptions)
            self.displaced[known.pod.key] = again
            self.line = (*self.line, known.pod.key)
        elif recreation_of(victim) in (Recreation.AT_ONCE, Recreation.AFTER_IT_IS_GONE):
            self.line = (*self.line, self.add(victim))

    def begin_round(self, gone: Iterable[Pod]) -> None:
        """Begins a round, after the evicted pods `gone` have ended. Their replacements appear. The scheduler tries
        again to place the pods that have no node yet."""
        retried = [each.pod.key for each in self.waiting]  # includes the postponed pods
        self.postponed = ()
        self.pool = (*retried, *(self.add(pod) for pod in gone))
        self.line = self._who_waited  # the pods that were pending before the drain

    # ---- pods that are tried ----

    def take(self, key: str) -> None:
        """Makes this pod of the pool (the pods without a known order) the next pod that the scheduler tries to
        place."""
        self.pool = tuple(other for other in self.pool if other != key)
        self.line = (key,)

    def postpone(self) -> None:
        """Empties the pool (the pods without a known order). The scheduler tries to place these pods after the next
        round of evictions."""
        self.pool, self.postponed = (), self.pool

    def tried(self, each: Displaced) -> None:
        """Removes the first pod from the line of pods to try, and records whether the scheduler found a node for it."""
        self.displaced[each.pod.key] = each
        self.line = self.line[1:]

    def drop_alike(self, each: Displaced) -> None:
        """Removes all pods that are interchangeable with this pod from the line of pods to try, because the scheduler
        would refuse them as well."""
        self.line = tuple(key for key in self.line if self.displaced[key].kind != each.kind)

    @property
    def open_kinds(self) -> tuple[str, ...]:
        """The keys of the pods that the scheduler may try next, from the pool (the pods without a known order). Of
        several interchangeable pods (pods of one kind), only the first is listed."""
        kinds = {self.displaced[key].kind: key for key in reversed(self.pool)}
        return tuple(reversed(kinds.values()))

    # ---- pods without a node ----

    @property
    def waiting(self) -> list[Displaced]:
        """The displaced pods without a node, the highest priority first, then in the order of their arrival. Leaves out
        pods that had no node before the drain."""
        found = (each for each in self.displaced.values() if not (each.landed or each.waited))
        return sorted(found, key=_in_order)

    @property
    def _who_waited(self) -> tuple[str, ...]:
        found = (each for each in self.displaced.values() if each.waited and not each.landed)
        return tuple(each.pod.key for each in sorted(found, key=_in_order))

    # ---- alike ----

    @property
    def likeness(self) -> Hashable:
        """A key that is equal for two queues if the same kinds of pods are on the same nodes, and the same kinds of
        pods wait in the same order. Interchangeable pods are of one kind."""
        landed = Counter((each.kind, each.replacement.node_name) for each in self.displaced.values() if each.landed)
        return (
            frozenset(landed.items()),
            tuple(each.kind for each in self.waiting),
            tuple(self.displaced[key].kind for key in self.line),
            tuple(self.displaced[key].kind for key in self.pool),
            len(self.postponed),
        )

    def absorb(self, other: PlacementQueue, weights: tuple[float, float], *, is_theirs: bool) -> None:
        """Adds the results of the queue of another scenario. The queues must be equivalent: in both queues, the same
        kinds of pods are on the same nodes. `weights` are the probabilities of this scenario and of the other scenario.
        `is_theirs` says whether the other scenario is the main scenario."""
        theirs: dict[Hashable, list[Displaced]] = {}
        for each in other.displaced.values():
            theirs.setdefault((each.kind, each.replacement.node_name), []).append(each)
        mine, their = weights
        for key, each in self.displaced.items():
            twin = theirs[each.kind, each.replacement.node_name].pop()
            self.displaced[key] = joined(each, mine, twin, their, is_theirs=is_theirs)


def _in_order(each: Displaced) -> tuple[int, int]:
    return -each.pod.priority, each.arrival
