"""The state that the machine's modules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.asked_ahead import ExtenderCall
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.model.pod import Pod
from scheduler_core.model.storage.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import SchedulingQueue
from scheduler_core.running.commands import Command
from scheduler_core.running.timed import NOT_TIMED, PodStopwatch
from scheduler_core.running.waiting.beside import Beside, Then, at_once
from scheduler_core.running.waiting.permits import WaitingPods
from scheduler_core.running.writes import Writes


class BindingStep(Enum):
    PERMIT = "a Permit plugin makes the pod wait"
    VOLUMES = "its volumes are being bound"
    BIND = "the binding is under way"
    SEEN = "bound; the watch has not shown it yet"


@dataclass(slots=True, kw_only=True, eq=False)
class VolumeToBind:
    """A PersistentVolume that gets its claim, or a claim that gets its node. `wanted`: the object after the write;
    `version`: its resourceVersion before. `number`: of the PatchVolume that was asked for last.

    `seen_from`: the version from which on the watch shows the write; None until the write is known to have happened.
    """

    kind: str
    key: str
    wanted: PersistentVolume | PersistentVolumeClaim
    version: int | None
    number: int = 0
    seen_from: int | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class PodOnItsWay:
    """A pod on its way to its node. `look_at`: when to look at the pod, because nobody knows whether it is bound;
    `bind` and `look`: the numbers of the Bind and of the look whose answers count. `is_doubtful`: some Bind of it had
    no answer; `refused`: why a later one certainly failed. `permits`: the Permit plugins that still make it wait, each
    with the end of its patience. `volumes`: what PreBind of VolumeBinding writes; `prepared`: how many PreBind plugins
    are done. `evaluated` and `feasible`: how many nodes its cycle checked, and how many passed. `is_asking`: one of its
    plugins is being asked beside the machine."""

    queued: QueuedPod
    pod: Pod
    node: str
    state: CycleState
    step: BindingStep
    since: float
    evaluated: int = 0
    feasible: int = 0
    look_at: float | None = None
    bind: int = 0
    look: int = 0
    is_doubtful: bool = False
    refused: str = ""
    permits: dict[str, float] = field(default_factory=dict)
    volumes: list[VolumeToBind] = field(default_factory=list)
    prepared: int = 0
    is_asking: bool = False
    stopwatch: PodStopwatch = NOT_TIMED

    @property
    def is_before_bind(self) -> bool:
        """Whether it can still be taken back without a look at the pod."""
        return self.step in (BindingStep.PERMIT, BindingStep.VOLUMES)


@dataclass(slots=True, kw_only=True, eq=False)
class Eviction:
    """The victims of one preemption, by uid. `last` (key and uid) is deleted after the others; `holds`: they are not
    all gone yet."""

    preemptor: Pod
    others: set[str]
    last: tuple[str, str]
    holds: bool = True


@dataclass(slots=True, eq=False)
class StatusSaid:
    """What was written to a pod's status last; `version` of the last answer, None while there is none. `is_false`: the
    API server has the condition PodScheduled=False."""

    reason: str
    message: str
    nominated_node: str
    is_false: bool
    version: int | None = None


@dataclass(slots=True, eq=False)
class Parts:
    scheduler: Scheduler
    cache: ClusterCache
    queue: SchedulingQueue
    permits: WaitingPods
    evictions: dict[str, Eviction] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)
    bindings: dict[str, PodOnItsWay] = field(default_factory=dict)
    said: dict[str, StatusSaid] = field(default_factory=dict)
    out: list[Command] = field(default_factory=list)
    asked: dict[int, tuple[str, ExtenderCall]] = field(default_factory=dict)
    """What extenders were asked for the binding of the pod with this uid, by number."""
    beside: Beside | None = None
    asking_profiles: frozenset[str] = frozenset()
    """The profiles with plugins that may be asked beside the machine."""
    asking: dict[int, Then] = field(default_factory=dict)
    """What goes on beside the machine, by number."""
    reserving: int = 0
    """Pods whose Reserve and Permit plugins are asked beside the machine. Until then no other pod is tried."""
    last_number: int = 0

    def number(self) -> int:
        self.last_number += 1
        return self.last_number

    def do(self, pod: Pod, work: Callable[[], Any], then: Then, now: float) -> bool:
        """Work in which plugins of the pod's profile are called. True: it goes on beside the machine, and `then` is
        called later; otherwise it was called."""
        if self.beside is None or pod.spec.scheduler_name not in self.asking_profiles:
            then(at_once(work), now)
            return False
        number = self.number()
        outcome = self.beside(number, work)
        if outcome is None:
            self.asking[number] = then
            return True
        then(outcome, now)
        return False

    def is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.scheduler.runners
