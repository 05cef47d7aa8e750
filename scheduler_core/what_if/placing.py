"""Places pods one after another in a cluster that grows by each placed pod, without preemption, and says why the others
got no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_GATES: Final = SchedulingGates()  # no node helps a pod that its owner holds back


class Filled(Value, kw_only=True):
    """The cluster with the placed pods. `left`: the pods that no node takes. `is_cut`: the caller's limit ended the
    work, and some pods were not tried."""

    world: Snapshot
    placed: Mapping[str, str]
    left: tuple[Pod, ...]
    is_cut: bool = False


class Placer:
    """Tries pods of one kind only until one is refused: until another pod gets a node, the others are refused too."""

    def __init__(self, scheduler: Scheduler, pods: Sequence[Pod]) -> None:
        """The pods get their turn by priority, the highest first."""
        twice = next((key for key, number in Counter(pod.key for pod in pods).items() if number > 1), None)
        if twice is not None:
            raise ValueError(f"two pods have the name {twice}: the second would take the place of the first")
        self.scheduler = scheduler
        self.pods = tuple(sorted(pods, key=lambda pod: -pod.priority))
        self._kinds = [_kind_of(pod) if has_only_known_plugins(scheduler, pod) else pod.key for pod in self.pods]

    @property
    def one_of_each_kind(self) -> tuple[Pod, ...]:
        return tuple(dict(zip(reversed(self._kinds), reversed(self.pods), strict=True)).values())

    def fill(self, world: Snapshot, at_least: int = 0) -> Filled:
        """Ends as soon as it is certain that fewer than `at_least` pods get a node."""
        placed: dict[str, str] = {}
        left: list[Pod] = []
        refused: set[Hashable] = set()
        for number, (pod, kind) in enumerate(zip(self.pods, self._kinds, strict=True)):
            if len(placed) + len(self.pods) - number < at_least:
                return Filled(world=world, placed=placed, left=tuple(left), is_cut=True)
            result = None if kind in refused else result_for(self.scheduler, world, pod)
            node = None if result is None else result.node
            if node is None:
                left.append(pod)
                refused.add(kind)
            else:
                world, placed[pod.key] = world.with_pod_placed(pod, node), node
                refused.clear()
        return Filled(world=world, placed=placed, left=tuple(left), is_cut=len(placed) < at_least)

    def why_left(self, filled: Filled, empty: str | None) -> LeftPods:
        """`empty`: a new node without pods of this placement, if there is one."""
        kind_of = dict(zip((pod.key for pod in self.pods), self._kinds, strict=True))
        return LeftPods(self.scheduler, filled, {pod.key: kind_of[pod.key] for pod in filled.left}, empty)


class LeftPods(Mapping[str, Verdict]):
    """Why each of the pods got no node, by its key; found out when it is read, once for each kind of pod."""

    def __init__(self, scheduler: Scheduler, filled: Filled, kinds: Mapping[str, Hashable], empty: str | None) -> None:
        self._scheduler = scheduler
        self._world = filled.world
        self._pods = {pod.key: pod for pod in filled.left}
        self._kinds = kinds
        self._empty = empty
        self._known: dict[Hashable, Verdict] = {}

    def __getitem__(self, key: str) -> Verdict:
        pod, kind = self._pods[key], self._kinds[key]
        if kind not in self._known:
            self._known[kind] = refusal(self._scheduler, self._world, pod, self._empty)
        return self._known[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def __repr__(self) -> str:
        return repr(dict(self))


def has_only_known_plugins(scheduler: Scheduler, pod: Pod) -> bool:
    """Whether the decision reads nothing of a pod that this library does not know: no extender, no foreign plugin."""
    try:
        plugins = scheduler.runner(pod).plugins
    except NoProfileError:
        return True
    return not scheduler.extenders and all(name in IN_TREE for names in plugins.by_point.values() for name in names)


def result_for(scheduler: Scheduler, world: Snapshot, pod: Pod) -> CycleResult | None:
    """Without preemption. None for a gated pod, for one of another scheduler, and for a cycle that failed or whose end
    is unknown."""
    if not _GATES.pre_enqueue(pod).is_success:
        return None
    try:
        result = scheduler.schedule(world, pod, preempts=False)
    except NoProfileError:
        return None
    return None if result.unknown or result.error else result


def refusal(scheduler: Scheduler, world: Snapshot, pod: Pod, empty: str | None) -> Verdict:
    """The pod's scheduling gates, the refusal by the empty new node `empty`, or else the scheduler's message for all
    nodes."""
    if not (gated := _GATES.pre_enqueue(pod)).is_success:
        return gated
    try:
        result = scheduler.schedule(world, pod, preempts=empty is None)
    except NoProfileError as nobody:
        return Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(nobody),))
    if result.prefilter is not None and not result.error:
        return result.prefilter
    if empty is not None and not (result.unknown or result.error):
        return result.statuses[empty]
    return Verdict(VerdictCode.UNSCHEDULABLE, (result.unknown or result.error or result.sentence,))


def _kind_of(pod: Pod) -> Hashable:
    """Equal for pods that differ only in what no in-tree plugin reads. A claim may belong to one pod only."""
    spec = pod.spec
    if spec.has_claims_or_disks or spec.resource_claims or spec.scheduling_gates:
        return pod.key
    written = msgspec.json.encode(spec)
    labels = tuple(sorted(pod.labels.items()))
    return (pod.namespace, pod.owner, labels, written, pod.nominated_node_name, pod.terminating)
