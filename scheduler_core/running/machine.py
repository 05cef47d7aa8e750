"""The machine of a running scheduler: what happens goes in, commands come out.

Every call takes `now`, in seconds of a clock that never jumps, and returns the commands that the shell must carry out.
The same calls give the same commands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from scheduler_core import broken_plugins
from scheduler_core.arguments import checked, several
from scheduler_core.broken_plugins import BrokenPlugins
from scheduler_core.cache.changes import Change, Changes
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cache.events import Event, Listing, Sync, read_event
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.extenders.asked_ahead import AskedAhead, Unanswered
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.framework.cycle_state import CycleError
from scheduler_core.framework.runner import Nominated
from scheduler_core.model.pod import Pod
from scheduler_core.plugins.default_preemption import PreemptionAttempt
from scheduler_core.queue.assembly import queue_for
from scheduler_core.queue.failed_cycle import handle_failed_attempt, handle_failed_cycle
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.running import binding, evicting
from scheduler_core.running.commands import (
    Answered,
    Bind,
    Commands,
    Count,
    DeleteVictim,
    LookAtPod,
    Note,
    Write,
    WriteStatus,
)
from scheduler_core.running.failures import LOST, Meaning, Reaction, WriteOutcome, meaning, reaction
from scheduler_core.running.observing import observe
from scheduler_core.running.parts import BindingStep, Parts, PodOnItsWay
from scheduler_core.running.refusing import LEFT_PENDING, refuse, why_left_pending
from scheduler_core.running.waiting.asking import Asking, CycleInput, HeldCycle
from scheduler_core.running.waiting.beside import Beside, WorkEnd
from scheduler_core.running.waiting.permits import WaitingPods
from scheduler_core.sampling import Search
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

_BACKOFF_FLUSH_SECONDS: Final = 1.0
_WAITING_FLUSH_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 1.0  # after an answer 429 without Retry-After
_LONGEST_PAUSE_SECONDS: Final = 32.0
"""The longest Retry-After of the API server's own flow control (dropped_requests_tracker.go in k8s.io/apiserver). A
longer one comes from a proxy or a policy, and the pod would keep its room on the node for so long."""


class Attempt(Value, kw_only=True):
    """One try to place a pod. `snapshot` and `nominated`: what its cycle saw. `result`: None if there is none because
    of `problem`: a plugin failed (`is_error`), or the pod was left pending without a cycle."""

    pod: Pod
    at: float
    snapshot: Snapshot
    nominated: Nominated
    began: float | None = None
    result: CycleResult | None
    problem: str = ""
    is_error: bool = False

    @property
    def outcome(self) -> str:
        """`scheduled`, `unschedulable` or `error`, as kube-scheduler's metrics call it."""
        if self.is_error or (self.result is not None and self.result.error):
            return "error"
        has_node = self.result is not None and self.result.node is not None and not self.result.unknown
        return "scheduled" if has_node else "unschedulable"


@dataclass(slots=True, eq=False)
class _List:
    """A list that is not completely applied."""

    kind: str
    slices: Iterator[Changes]
    is_ready: Callable[[], bool]


class Machine:
    """Schedules the pods of the scheduler's profiles.

    `awaits`: the kinds that must have been listed before the first pod is placed. `permits`: shared with Permit plugins
    that decide later. `on_attempt` sees each try to place a pod, before its commands, and `on_change` each change by
    an event, but none by a list that `next` applies. `ahead`: that of the scheduler's extenders; without it they are
    asked inside the cycle. `beside` does what asks plugins with `may_wait`; without it they are asked inside the
    machine. No other pod is tried while one waits for an extender or a plugin. `measured` may replace the scheduler of
    a cycle by one that decides the same.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        awaits: Collection[str] = ("Node", "Pod"),
        permits: WaitingPods | None = None,
        on_attempt: Callable[[Attempt], None] | None = None,
        ahead: AskedAhead | None = None,
        beside: Beside | None = None,
        measured: Callable[[Scheduler], Scheduler] | None = None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        queue = queue_for(
            scheduler,
            is_preempting=lambda pod: evicting.holds(self.parts, pod),
            sort_failed=partial(self._queue_plugin_failed, "Pods that QueueSort cannot compare go by priority"),
            gate_failed=partial(self._queue_plugin_failed, "Pods whose PreEnqueue fails stay pending"),
        )
        asking = frozenset(
            name
            for name, runner in scheduler.runners.items()
            if any(getattr(plugin, "may_wait", False) for plugin in runner.plugins.plugins.values())
        )
        self.parts = Parts(
            scheduler, ClusterCache(), queue, permits or WaitingPods(), beside=beside, asking_profiles=asking
        )
        self._awaits = set(several("awaits", awaits, str))
        self._on_attempt = on_attempt
        self._lists: list[_List] = []
        self._backoff_flushed_at: float | None = None
        self._waiting_flushed_at: float | None = None
        self._broken = BrokenPlugins()
        self._next_start = 0
        configuration = scheduler.configuration
        self._sampling_profiles = frozenset(
            profile.scheduler_name
            for profile in configuration.profiles
            if 0 < configuration.nodes_percentage(profile) < 100
        )
        self._asking = Asking(ahead)
        self._is_trying = False
        self._began = 0.0
        self._measured = measured
        self._on_change = on_change

    def __repr__(self) -> str:
        return f"<Machine {self.parts.scheduler!r} queued={len(self.parts.queue)}>"

    # ---- what happens ----

    def take(self, event: Event, now: float) -> Commands:
        """An event of a watch, or a list. A list is applied in slices by `next`, and waits while its next page is not
        there; until `is_listing` is false for its kind, hold back the events of its watch and further lists of it.
        Raises UnusableEventError."""
        if isinstance(event, Sync):
            self._lists.append(_List(event.kind, self.parts.cache.relist(event), event.is_ready))
            return self._out(now)
        read = read_event(event)
        for change in self.parts.cache.apply_read(read):
            observe(self.parts, change, now)
            if self._on_change is not None:
                self._on_change(change)
        if isinstance(read, Listing):
            self._awaits.discard(read.kind)
        return self._out(now)

    def is_listing(self, kind: str) -> bool:
        """Whether a list of this kind is not completely applied yet."""
        return any(kind == each.kind for each in self._lists)

    @property
    def has_work(self) -> bool:
        """Whether `next` has something to do now."""
        if self._lists and any(each.is_ready() for each in self._lists):
            return True
        return self.parts.queue.has_next and self._can_try

    @property
    def _can_try(self) -> bool:
        is_asking = self._asking.held is not None or self._is_trying or self.parts.reserving
        return not self._awaits and not is_asking

    def next(self, now: float) -> Commands:
        """Applies one slice of a list, and tries the next pod of the queue, if there is one. Raises the error of a page
        that cannot be read; the kind must then be listed again."""
        if self._lists:
            self._apply_slice(now)
        if self._can_try:
            queued = self.parts.queue.pop()
            if queued is not None:
                self._attempt(queued, now)
        return self._out(now)

    def answered(self, command: Answered, outcome: WriteOutcome, now: float) -> Commands:
        """The shell knows the outcome of a command. A second answer, and one that came too late, is ignored."""
        if isinstance(command, LookAtPod):
            self._looked(command, outcome, now)
        else:
            write = self.parts.writes.answered(command.number)
            if write is not None:
                self._wrote(write, outcome, now)
        return self._out(now)

    def told(self, number: int, answer: bytes | ExtenderError, now: float) -> Commands:
        """The extender has answered AskExtender, or could not be asked."""
        held = self._asking.answered(self.parts, number, answer, now)
        if held is not None:
            self._attempt(held.queued, now, held)
            if not self._is_trying:
                self._asking.done(held)
        return self._out(now)

    def ended(self, number: int, outcome: WorkEnd, now: float) -> Commands:
        """What went on beside the machine has ended."""
        then = self.parts.asking.pop(number, None)
        if then is not None:
            then(outcome, now)
        return self._out(now)

    def tick(self, now: float) -> Commands:
        """Time has passed: call it every second."""
        parts = self.parts
        if self._backoff_flushed_at is None or now - self._backoff_flushed_at >= _BACKOFF_FLUSH_SECONDS:
            self._backoff_flushed_at = now
            parts.queue.flush_backoff(now)
        if self._waiting_flushed_at is None or now - self._waiting_flushed_at >= _WAITING_FLUSH_SECONDS:
            self._waiting_flushed_at = now
            parts.queue.flush_waiting(now)
        for write in parts.writes.without_answer(now):
            parts.writes.answered(write.number)
            self._wrote(write, LOST, now)
        for each in tuple(parts.bindings.values()):
            self._be_patient(each, now)
        return self._out(now)

    @checked
    def allow(self, uid: str, plugin: str, now: float) -> Commands:
        """The pod no longer waits for this Permit plugin."""
        self.parts.permits.allow(uid, plugin)
        return self._out(now)

    @checked
    def reject(self, uid: str, plugin: str, message: str, now: float) -> Commands:
        """The pod that waits for this Permit plugin goes back into the queue."""
        self.parts.permits.reject(uid, plugin, message)
        return self._out(now)

    # ---- lists ----

    def _apply_slice(self, now: float) -> None:
        applied = next((each for each in self._lists if each.is_ready()), None)
        if applied is None:
            return
        try:
            changes = next(applied.slices, None)
        except Exception:  # of a page: the list is incomplete, and its kind must be listed again
            self._lists.remove(applied)
            raise
        if changes is None:
            self._lists.remove(applied)
            self._awaits.discard(applied.kind)
            return
        for change in changes:
            observe(self.parts, change, now)

    # ---- one pod ----

    def _attempt(self, queued: QueuedPod, now: float, held: HeldCycle | None = None) -> None:
        """`held`: what the cycle saw before it had to wait for an extender."""
        parts = self.parts
        pod = self._still_wanted(queued)
        if pod is None:
            return
        if held is None:
            self._began = now
            parts.out.append(Note(verbosity=3, text="Attempting to schedule pod", pod=pod.key))
        seen = CycleInput(parts.cache.snapshot(), parts.queue.nominations.by_node) if held is None else held.seen
        reason = why_left_pending(pod)
        if reason:
            self._show(pod, seen, None, now, problem=reason)
            self._leave_pending(queued, pod, reason, now)
            return
        self._is_trying = parts.do(
            pod, partial(self._cycle, pod, seen), partial(self._concluded, queued, held, seen), now
        )

    def _still_wanted(self, queued: QueuedPod) -> Pod | None:
        """The pod as it is now; None if it needs no node any more."""
        parts = self.parts
        pod: Pod | None = parts.cache.find("Pod", queued.key)
        if pod is None or pod.uid != queued.pod.uid or pod.node_name or pod.terminating:
            parts.queue.done(queued.pod)
            return None
        queued.pod = pod
        return pod

    def _concluded(
        self,
        queued: QueuedPod,
        held: HeldCycle | None,
        seen: CycleInput,
        outcome: WorkEnd,
        now: float,
    ) -> None:
        """The cycle has ended."""
        self._is_trying = False
        pod = self._still_wanted(queued) if outcome.was_beside else queued.pod
        if pod is not None:
            if isinstance(outcome.bug, Unanswered):
                self._asking.hold(self.parts, queued, outcome.bug.call, held, seen)
            elif outcome.bug is not None:  # of a plugin: it must not stop the scheduling of other pods
                self._failed(queued, pod, seen, outcome.bug, now)
            elif (outcome.was_beside or held is not None) and self._is_gone(outcome.value.node):
                gone = CycleError("", f"node {outcome.value.node} was deleted before the pod was placed on it")
                self._failed(queued, pod, seen, gone, now)
            else:
                self._follow(queued, pod, seen, outcome.value, now)
        if held is not None and outcome.was_beside:
            self._asking.done(held)

    def _is_gone(self, node: str | None) -> bool:
        return node is not None and not self.parts.cache.snapshot().has_node(node)

    def _follow(self, queued: QueuedPod, pod: Pod, seen: CycleInput, result: CycleResult, now: float) -> None:
        """What the cycle has decided."""
        parts = self.parts
        if result.next_start is not None:
            self._next_start = result.next_start
        runner = parts.scheduler.runner(pod)
        wrong = broken_plugins.wrong_score(runner, result)
        if wrong is not None:
            self._failed(queued, pod, seen, wrong, now)
            return
        self._broken.worked(pod.spec.scheduler_name, result, runner)
        self._show(pod, seen, result, now)
        if result.node is not None and not result.unknown:
            binding.start(parts, queued, result, now)
            return
        if result.unknown:
            self._leave_pending(queued, pod, result.unknown, now)
            return
        if result.state is not None and result.state.find(PreemptionAttempt) is not None:
            parts.out.append(Count(metric="preemption_attempts_total"))
        preemption = result.preemption
        if preemption is not None and preemption.victims:
            evicting.announce(parts, pod)
        failed = handle_failed_cycle(parts.queue, queued, result, now)
        refuse(parts, pod, failed)
        if preemption is not None and preemption.victims:
            evicting.begin(parts, pod, preemption.node, preemption.victims, now)

    def _failed(self, queued: QueuedPod, pod: Pod, seen: CycleInput, bug: BaseException, now: float) -> None:
        parts, profile = self.parts, pod.spec.scheduler_name
        runner = parts.scheduler.runner(pod)
        plugin, problem = broken_plugins.failure(runner, bug)
        self._show(pod, seen, None, now, problem=problem, is_error=True)
        is_too_often = plugin != "" and self._broken.raised(profile, plugin)
        if is_too_often and broken_plugins.only_scores(runner, plugin):
            parts.scheduler = broken_plugins.without(parts.scheduler, profile, plugin)
            parts.out.append(Note(verbosity=0, text=f"Switched off: {problem}, the third time in a row", pod=pod.key))
            parts.out.append(Count(metric="plugins_switched_off_total", label=plugin))
        elif is_too_often:
            self._leave_pending(queued, pod, f"{problem}, the third time in a row", now)
            return
        failed = handle_failed_attempt(parts.queue, queued, now, message=problem, is_error=True)
        refuse(parts, pod, failed)

    def _queue_plugin_failed(self, text: str, plugin: str, bug: Exception) -> None:
        self.parts.out.append(Note(verbosity=0, text=text, why=f"plugin {plugin} failed: {bug!r}"))

    def _leave_pending(self, queued: QueuedPod, pod: Pod, why: str, now: float) -> None:
        failed = handle_failed_attempt(
            self.parts.queue, queued, now, message=why, refused_by=(LEFT_PENDING,), nominated_node=None
        )
        refuse(self.parts, pod, failed)

    def _cycle(self, pod: Pod, seen: CycleInput) -> CycleResult:
        parts = self.parts
        said = parts.said.get(pod.uid)
        if said is not None:  # the watch may not have shown it yet
            pod = replace_value(pod, nominated_node_name=said.nominated_node)
        scheduler = parts.scheduler if self._measured is None else self._measured(parts.scheduler)
        return scheduler.schedule(
            seen.snapshot, pod, nominated=seen.nominated, search=self._search(pod.spec.scheduler_name)
        )

    def _search(self, profile_name: str) -> Search | None:
        """None checks every node: what kube-scheduler leaves out without a percentageOfNodesToScore may be better."""
        return Search(self._next_start) if profile_name in self._sampling_profiles else None

    def _show(
        self,
        pod: Pod,
        seen: CycleInput,
        result: CycleResult | None,
        now: float,
        *,
        problem: str = "",
        is_error: bool = False,
    ) -> None:
        if self._on_attempt is not None:
            self._on_attempt(
                Attempt(
                    pod=pod,
                    at=now,
                    began=self._began,
                    snapshot=seen.snapshot,
                    nominated=seen.nominated,
                    result=result,
                    problem=problem,
                    is_error=is_error,
                )
            )

    # ---- answers ----

    def _wrote(self, write: Write, outcome: WriteOutcome, now: float) -> None:
        what = reaction(write, outcome)
        if what is Reaction.SEND_AGAIN:
            pause = min(outcome.retry_after_seconds or _PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
            self.parts.writes.pause(write, now + pause)
        if isinstance(write, WriteStatus | DeleteVictim) and meaning(outcome) is Meaning.REFUSED:
            text = "Could not write the status" if isinstance(write, WriteStatus) else "Could not evict the pod"
            self.parts.out.append(Note(verbosity=0, text=text, pod=write.pod, why=outcome.why))
        if isinstance(write, Bind):
            self._bind_answered(write, what, outcome, now)
        elif isinstance(write, WriteStatus):
            self._status_answered(write, what, outcome)
        elif isinstance(write, DeleteVictim):
            self._delete_answered(write, what, outcome, now)
        else:
            binding.volume_answered(self.parts, write, what, outcome, now)

    def _bind_answered(self, bind: Bind, what: Reaction, outcome: WriteOutcome, now: float) -> None:
        parts = self.parts
        current = parts.bindings.get(bind.uid)
        if current is None or current.bind != bind.number:  # the pod may be on its way anew
            return
        if what is Reaction.FINISH:
            binding.bound(parts, current, now)
        elif what is Reaction.LOOK:
            current.is_doubtful, current.look_at = True, now + binding.LOOK_SECONDS
        elif what is Reaction.SEND_AGAIN and now - current.since < binding.BUSY_SECONDS:
            binding.send_bind(parts, current)
        else:
            why = f"binding rejected: {outcome.why}"
            if current.is_doubtful:  # an earlier Bind of ours may be the reason
                current.refused, current.look_at = why, now
            else:
                binding.fail(parts, current, why, now)

    def _status_answered(self, write: WriteStatus, what: Reaction, outcome: WriteOutcome) -> None:
        parts = self.parts
        said, current = parts.said.get(write.uid), parts.bindings.get(write.uid)
        if what is Reaction.SEND_AGAIN and (current is None or current.is_before_bind):
            if not parts.writes.has(WriteStatus, write.uid) and said is not None:
                parts.writes.ask(write)
        elif what is Reaction.FINISH and said is not None:
            said.version, said.is_false = outcome.version, said.is_false or write.reason != ""
        elif not parts.writes.has(WriteStatus, write.uid):
            parts.said.pop(write.uid, None)

    def _delete_answered(self, delete: DeleteVictim, what: Reaction, outcome: WriteOutcome, now: float) -> None:
        if what is Reaction.FINISH:
            evicting.deleted(self.parts, delete, now, was_there=meaning(outcome) is Meaning.DONE)
        elif what is Reaction.SEND_AGAIN:
            self.parts.writes.ask(delete)
        else:
            evicting.failed(self.parts, delete, now)

    def _looked(self, look: LookAtPod, outcome: WriteOutcome, now: float) -> None:
        """Only an answer that shows the pod tells what became of its binding."""
        parts = self.parts
        current = parts.bindings.get(look.uid)
        if current is None or current.look_at is None or current.look != look.number:  # an older one says too little
            return
        current.look = 0
        seen = meaning(outcome)
        if seen is Meaning.GONE or (seen is Meaning.DONE and outcome.found_uid != look.uid):
            binding.fail(parts, current, "the pod no longer exists", now)
        elif seen is not Meaning.DONE:
            current.look_at = now + binding.LOOK_SECONDS
        elif outcome.found_node == current.node:
            binding.bound(parts, current, now)
            current.look_at = now + binding.UNSEEN_SECONDS
        elif outcome.found_node:
            binding.fail(parts, current, f"the pod was bound to {outcome.found_node}", now)
        elif parts.writes.is_busy(look.uid):
            current.look_at = now + binding.LOOK_SECONDS
        elif current.refused:
            binding.fail(parts, current, current.refused, now)
        else:
            current.step, current.look_at, current.since, current.is_doubtful = BindingStep.BIND, None, now, True
            binding.send_bind(parts, current)

    # ---- time ----

    def _be_patient(self, each: PodOnItsWay, now: float) -> None:
        parts = self.parts
        late = next((name for name, end in each.permits.items() if end <= now), None)
        if late is not None:
            binding.reject(
                parts,
                each,
                f"rejected due to timeout after waiting {now - each.since:g}s at plugin {late}",
                now,
                plugin=late,
            )
        elif each.step is BindingStep.VOLUMES:
            binding.prepare(parts, each, now)
        elif each.look_at is not None and each.look_at <= now:
            binding.look(parts, each, now)

    # ---- commands ----

    def _out(self, now: float) -> Commands:
        parts = self.parts
        while parts.permits.has_decided:  # a plugin may decide about other pods meanwhile
            for decision in parts.permits.decided():
                binding.decide_permit(parts, decision.uid, decision.plugin, decision.message, now)
        if parts.writes.has_waiting:
            parts.out.extend(parts.writes.to_send(now, self._with_version))
        if not parts.out:
            return ()
        commands = tuple(parts.out)
        parts.out.clear()
        return commands

    def _with_version(self, write: Write) -> Write:
        if not isinstance(write, WriteStatus):
            return write
        said = self.parts.said.get(write.uid)
        versions = (self.parts.cache.version("Pod", write.pod), None if said is None else said.version)
        return replace_value(write, version=max((each for each in versions if each is not None), default=None))
