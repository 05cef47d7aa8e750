"""The scheduling queue: active pods, pods in back-off, and pods that wait for an event.

A pod becomes active unless a PreEnqueue plugin refuses it. A popped pod that could not be placed waits for an event
that may help, then until its back-off is over, and becomes active again. Source:
pkg/scheduler/backend/queue/scheduling_queue.go (v1.36; v1.37 where `QueueRules` says so).

Reads no clock: `now`, in seconds of a clock that never jumps, is an argument, and the owner of the queue must call
`flush_backoff` and `flush_waiting` regularly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from msgspec import field

from scheduler_core.framework.verdict import Verdict, unresolvable
from scheduler_core.model.pod import Pod
from scheduler_core.plugin_contract import check_verdict
from scheduler_core.queue.active import ActiveRoom, QueueOrder
from scheduler_core.queue.backoff import BackoffPolicy, BackoffRoom
from scheduler_core.queue.events import FORCE_ACTIVATE, POD_ADDED, POD_UPDATED, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from scheduler_core.queue.nominations import Nominations
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.waiting import RegisteredHints, Requeue, WaitingRoom
from scheduler_core.values import Value

# Reasons of kube-scheduler's metric queue_incoming_pods_total, besides the events.
_ADDED: Final = POD_ADDED.label
_UPDATED: Final = POD_UPDATED.label
_FAILED_ATTEMPT: Final = "ScheduleAttemptFailure"
_BACKOFF_IS_OVER: Final = "BackoffComplete"
_POPPED_EARLY: Final = "PopFromBackoffQ"
_TIMEOUT: Final = "UnschedulableTimeout"
_ACTIVATED: Final = "ForceActivate"

_GATES: Final = "SchedulingGates"


class Room(Enum):
    ACTIVE = "active"
    BACKOFF = "backoff"
    WAITING = "waiting"


class Gatekeeper(Protocol):
    """A PreEnqueue plugin: whether a pod may enter the active and back-off queues."""

    name: str

    def pre_enqueue(self, pod: Pod) -> Verdict:
        """With another verdict than SUCCESS, the pod waits for an event for which this plugin registered."""


class ProfileInQueue(Value, kw_only=True):
    """`gatekeepers`: the profile's PreEnqueue plugins. `hints`: after which events a waiting pod is tried again."""

    gatekeepers: tuple[Gatekeeper, ...] = ()
    hints: RegisteredHints = field(default_factory=RegisteredHints)

    def in_turn(self, last: str) -> Iterable[Gatekeeper]:
        """The one that gated the pod last comes first: most likely it still does."""
        if not last:
            return self.gatekeepers
        return sorted(self.gatekeepers, key=lambda gatekeeper: gatekeeper.name != last)


class QueueRules(Value, kw_only=True):
    """What differs between releases; the defaults are those of 1.36 (config/kube_version.py)."""

    hears_gating_plugin_only: bool = True
    nominates_gated: bool = False
    flushes_gated: bool = False


class SchedulingQueue:
    """The pods that need a node, and the nominations that preemption made.

    `goes_before`: the QueueSort plugin's order. `profiles`: by schedulerName. `gate_failed`: called once for each
    PreEnqueue plugin (by its name), when it raises for the first time.
    """

    def __init__(
        self,
        goes_before: QueueOrder,
        profiles: Mapping[str, ProfileInQueue],
        *,
        policy: BackoffPolicy | None = None,
        rules: QueueRules | None = None,
        gate_failed: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self._profiles = profiles
        self._gate_failed = gate_failed
        self._failed_gates: set[str] = set()
        self._rules = rules or QueueRules()
        self._policy = policy or BackoffPolicy()
        self._active = ActiveRoom(goes_before)
        self._backoff = BackoffRoom(self._policy, goes_before)
        self._waiting = WaitingRoom()
        self.nominations = Nominations()
        self.incoming: Counter[tuple[str, str]] = Counter()
        """How often a pod came into a part of the queue, and why, as kube-scheduler's metric queue_incoming_pods_total
        names both."""

    # ---- looking ----

    def __len__(self) -> int:
        return len(self._active) + len(self._backoff) + len(self._waiting)

    def sizes(self) -> Mapping[str, int]:
        """How many pods are in each part, under the names of kube-scheduler's metric `pending_pods`."""
        gated = sum(queued.is_gated for queued in self._waiting.pods)
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._waiting) - gated,
            "gated": gated,
        }

    def refusals(self) -> Mapping[tuple[str, str], int]:
        """How many pods each plugin of each profile refused and no attempt has tried again, as kube-scheduler's metric
        `unschedulable_pods`."""
        found: Counter[tuple[str, str]] = Counter()
        for room in (self._active, self._backoff, self._waiting):
            for queued in room.pods:
                for plugin in queued.rejectors:
                    found[plugin, queued.pod.spec.scheduler_name] += 1
        return found

    def events_kept(self) -> Mapping[str, int]:
        """The events that wait for pods in flight, by label; pods in flight count as `PodPopped`."""
        return {"PodPopped": len(self._active.in_flight), **Counter(each.label for each in self._active.events)}

    def pods_in(self, room: Room) -> tuple[Pod, ...]:
        """The next pod to be popped comes first if the part is active or back-off; the others have no particular
        order."""
        rooms: Mapping[Room, ActiveRoom | BackoffRoom | WaitingRoom] = {
            Room.ACTIVE: self._active,
            Room.BACKOFF: self._backoff,
            Room.WAITING: self._waiting,
        }
        return tuple(queued.pod for queued in rooms[room].pods)

    def find(self, key: str) -> tuple[Room, QueuedPod] | None:
        """The pod "namespace/name" and its part of the queue; None if it is in none, for example in flight."""
        for room, queued in (
            (Room.ACTIVE, self._active.get(key)),
            (Room.BACKOFF, self._backoff.get(key)),
            (Room.WAITING, self._waiting.get(key)),
        ):
            if queued is not None:
                return room, queued
        return None

    def profile(self, scheduler_name: str) -> ProfileInQueue:
        """A profile without plugins and hints if none has this schedulerName."""
        return self._profiles.get(scheduler_name) or ProfileInQueue()

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Uids of popped pods whose scheduling attempts have not ended."""
        return self._active.in_flight

    # ---- coming in, going out ----

    def add(self, pod: Pod, now: float) -> Room:
        """A new pod. If a PreEnqueue plugin refuses it, it waits outside of the active queue."""
        return self._add(pod, _ADDED, now)

    def _add(self, pod: Pod, why: str, now: float) -> Room:
        room = self._to_active(QueuedPod(pod=pod, timestamp=now), why, now)
        if room is Room.ACTIVE or self._rules.nominates_gated:
            self.nominations.add(pod)
        return room

    @property
    def has_next(self) -> bool:
        """Whether `pop` gives a pod."""
        return len(self._active) > 0 or (self._policy.aligned and self._backoff.has_early)

    def pop(self) -> QueuedPod | None:
        """The next pod to schedule, or None. When its attempt has ended, the caller must call `add_unschedulable` or
        `done`.

        If the active queue is empty, pops the refused pod whose back-off ends first (gate SchedulerPopFromBackoffQ).
        """
        while True:
            queued = self._active.take_next()
            if queued is None and self._policy.aligned:
                queued = self._backoff.take_early()
                if queued is not None:
                    self.incoming["active", _POPPED_EARLY] += 1
            if queued is None or self._active.begin(queued):
                return queued

    def pop_pod(self, key: str, now: float) -> QueuedPod | None:
        """Pops this pod, even before others. None if a PreEnqueue plugin refuses it, or if it is not in the queue."""
        self._activate(key, now)
        queued = self._active.remove(key)
        return queued if queued is not None and self._active.begin(queued) else None

    def done(self, pod: Pod) -> None:
        """Ends the attempt of a pod that was placed or deleted."""
        self._active.done(pod)

    def add_unschedulable(
        self, queued: QueuedPod, now: float, *, refused_by: Iterable[str] = (), pending_for: Iterable[str] = ()
    ) -> Room:
        """Puts a pod back after a failed attempt, and says where. `refused_by`: plugins that refused it; `pending_for`:
        plugins that returned Pending. Both are empty after an error.

        Handles the events since the pod was popped. Raises ValueError if the pod is already in the queue, a bug of the
        caller.
        """
        if self.find(queued.key) is not None:
            raise ValueError(f"pod {queued.key} is already in the queue")
        queued.unschedulable_plugins, queued.pending_plugins = set(refused_by), set(pending_for)
        queued.gating_plugin, queued.gating_reason, queued.gating_events = "", "", ()
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = now
        queued.backoff_until = None
        queued.was_flushed, queued.flushed_at = False, None
        room = self._requeue(queued, self._judge_missed(queued), _FAILED_ATTEMPT, now)
        self._active.done(queued.pod)
        return room

    def update(self, old: Pod, new: Pod, changes: Iterable[ClusterEvent], now: float) -> Room | None:
        """Replaces a changed pending pod, and says where it is now. `changes`: see hints.changes.pod_changes.

        None if the pod is in flight: the change is then handled when the pod is put back.
        """
        if self._active.is_in_flight(new):
            for event in changes:
                self._active.note(event, old, new)
            return None
        found = self.find(new.key)
        if found is None:
            return self._add(new, _UPDATED, now)
        room, queued = found
        queued.pod = new
        self.nominations.update(old, new)
        if room is Room.WAITING:
            return self._update_waiting(queued, old, new, changes, now)
        (self._active if room is Room.ACTIVE else self._backoff).put(queued)
        return room

    def delete(self, pod: Pod) -> None:
        self.nominations.remove(pod)
        for room in (self._active, self._backoff, self._waiting):
            room.remove(pod.key)

    # ---- moving ----

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, now: float, *, may_move: Callable[[Pod], bool] | None = None
    ) -> None:
        """Passes an event to every waiting pod whose plugins registered it, unless `may_move` excludes the pod. A pod
        that it may help becomes active, or goes to back-off if its back-off is not over."""
        plugins = {plugin for profile in self._profiles.values() for plugin in profile.hints.asked_about(event)}
        if event.is_wildcard or plugins:
            waiting = self._waiting.pods if event.is_wildcard else self._waiting.refused_by(plugins)
            self._move([q for q in waiting if may_move is None or may_move(q.pod)], event, old, new, now)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Makes these pods active at once; one in flight when it is put back. Ignores unknown pods."""
        for pod in pods:
            if not self._activate(pod.key, now) and self._active.is_in_flight(pod):
                self._active.note(FORCE_ACTIVATE, None, pod)

    def flush_backoff(self, now: float) -> None:
        """Makes pods active whose back-off is over. To be called at the beginning of every second."""
        for queued in self._backoff.take_finished(now):
            self._to_active(queued, _BACKOFF_IS_OVER, now, from_backoff=True)

    def flush_waiting(self, now: float) -> None:
        """Retries pods that have waited for an event for five minutes. To be called every 30 seconds."""
        stale = self._waiting.out_of_patience(now)
        for queued in stale:
            queued.was_flushed = True
            queued.flushed_at = now if self._rules.flushes_gated else None
        if stale:  # else it would only be noted for the pods in flight
            self._move(stale, UNSCHEDULABLE_TIMEOUT, None, None, now, why=_TIMEOUT)

    # ---- the doors ----

    def _requeue(self, queued: QueuedPod, requeue: Requeue, why: str, now: float) -> Room:
        if requeue is Requeue.STAY:
            return self._to_waiting(queued, why)
        if requeue is Requeue.AFTER_BACKOFF and self._policy.is_waiting(queued, now):
            return self._to_backoff(queued, why)
        return self._to_active(queued, why, now)

    def _to_waiting(self, queued: QueuedPod, why: str) -> Room:
        if self._waiting.get(queued.key) is None:
            self.incoming["unschedulable", why] += 1
        self._waiting.put(queued)
        return Room.WAITING

    def _to_active(self, queued: QueuedPod, why: str, now: float, *, from_backoff: bool = False) -> Room:
        # If pods may be popped early from back-off, the PreEnqueue plugins ran when the pod went there.
        if not (from_backoff and self._policy.aligned):
            self._ask_gatekeepers(queued)
        if queued.is_gated:
            return self._hold_back(queued, why)
        if queued.first_attempt_at is None:
            queued.first_attempt_at = now
        self._waiting.remove(queued.key)
        self._backoff.remove(queued.key)
        self._active.put(queued)
        self.incoming["active", why] += 1
        return Room.ACTIVE

    def _to_backoff(self, queued: QueuedPod, why: str) -> Room:
        if self._policy.aligned:
            self._ask_gatekeepers(queued)
            if queued.is_gated:
                return self._hold_back(queued, why)
        self._waiting.remove(queued.key)
        self._backoff.put(queued)
        self.incoming["backoff", why] += 1
        return Room.BACKOFF

    def _hold_back(self, queued: QueuedPod, why: str) -> Room:
        if self._rules.flushes_gated:
            queued.was_flushed = False
        return self._to_waiting(queued, why)

    def _ask_gatekeepers(self, queued: QueuedPod) -> None:
        profile, last = self._profile_of(queued.pod), queued.gating_plugin
        for gatekeeper in profile.in_turn(last):
            verdict = self._asked(gatekeeper, queued.pod)
            if not verdict.is_success:
                queued.gating_reason = verdict.message
                if gatekeeper.name != last:
                    queued.unschedulable_plugins.add(gatekeeper.name)
                    queued.gating_plugin = gatekeeper.name
                    queued.gating_events = profile.hints.events_of(gatekeeper.name)
                return
        queued.gating_plugin = queued.gating_reason = ""

    def _asked(self, gatekeeper: Gatekeeper, pod: Pod) -> Verdict:
        """A plugin that raises refuses: the pod stays out until an event of this plugin."""
        try:
            verdict = gatekeeper.pre_enqueue(pod)
            check_verdict(gatekeeper.name, "pre_enqueue", verdict)
        except Exception as bug:
            if self._gate_failed is not None and gatekeeper.name not in self._failed_gates:
                self._gate_failed(gatekeeper.name, bug)
            self._failed_gates.add(gatekeeper.name)
            return unresolvable(f"it failed: {bug!r}")
        return verdict

    def _move(
        self, candidates: Iterable[QueuedPod], event: ClusterEvent, old: Any, new: Any, now: float, *, why: str = ""
    ) -> None:
        asks_all = event.is_wildcard and self._rules.flushes_gated
        for queued in candidates:
            if queued.is_gated and not asks_all and not self._reaches_gated(queued, event):
                continue
            requeue = self._profile_of(queued.pod).hints.judge(queued, event, old, new)
            if requeue is not Requeue.STAY:
                why = why or event.label
                if self._requeue(queued, requeue, why, now) is Room.WAITING:
                    self.incoming["unschedulable", why] += 1  # it came again
        self._active.note(event, old, new)

    def _reaches_gated(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        if not self._rules.hears_gating_plugin_only:
            return _GATES not in queued.unschedulable_plugins
        return any(gating.matches(event) for gating in queued.gating_events)

    def _activate(self, key: str, now: float) -> bool:
        waiting = self._waiting.get(key)
        if waiting is not None:
            return self._to_active(waiting, _ACTIVATED, now) is Room.ACTIVE
        resting = self._backoff.remove(key)
        return resting is not None and self._to_active(resting, _ACTIVATED, now, from_backoff=True) is Room.ACTIVE

    def _update_waiting(
        self, queued: QueuedPod, old: Pod, new: Pod, changes: Iterable[ClusterEvent], now: float
    ) -> Room:
        for event in changes:
            requeue = self._profile_of(new).hints.judge(queued, event, old, new)
            room = self._requeue(queued, requeue, event.label, now)
            if room is not Room.WAITING:
                return room
        return Room.WAITING

    def _judge_missed(self, queued: QueuedPod) -> Requeue:
        """The strongest effect of the events during the pod's attempt. AFTER_BACKOFF if no plugin refused the pod, or
        if no attempt is recorded."""
        happenings = self._active.happened_since_taken(queued.pod)
        if not queued.rejectors or happenings is None:
            return Requeue.AFTER_BACKOFF
        hints = self._profile_of(queued.pod).hints
        answers = {hints.judge(queued, happening.event, happening.old, happening.new) for happening in happenings}
        return next((answer for answer in (Requeue.AT_ONCE, Requeue.AFTER_BACKOFF) if answer in answers), Requeue.STAY)

    def _profile_of(self, pod: Pod) -> ProfileInQueue:
        return self.profile(pod.spec.scheduler_name)
