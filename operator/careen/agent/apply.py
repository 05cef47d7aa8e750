"""Applies a decision's actions in order, and stops at the first action whose success is not certain.

This module records the results of the actions in the agent's memory, and decides nothing. After such a stop, the next
round of the agent's loop (observe, decide, apply) reads the actual state.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, assert_never

from careen.agent.few_at_a_time import all_or_none
from careen.agent.telemetry.metrics import Metrics
from careen.cluster.events import Subject, post_event
from careen.cluster.evictions import Evicted, evict
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import patch_node
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.writes import Landed, Rejected, Stale, StillUnclear
from careen.core.actions import (
    Action,
    AskReboot,
    ConfirmClaim,
    Evict,
    EvictPod,
    Notify,
    PatchNode,
    PostEvent,
    SilenceAlerts,
    WriteLock,
)
from careen.core.facts.memory import (
    Memory,
    RebootOutcome,
    after_eviction,
    after_reboot_asked,
    before_reboot_asked,
)
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import event_reason
from careen.core.lock import content as lock
from careen.core.lock.reading import LockReading
from careen.host import reboot
from careen.host.node_host import Host
from scheduler_core.values import Value

_LOG = logging.getLogger("careen.apply")

# The least time between two evictions, so that the replacement is scheduled before the next eviction, as forecasts
# assume. Current API servers take about as long to answer.
ONE_BY_ONE_SECONDS = 0.1

# Each turn checks hold, pause and need once. With a slow webhook the evictions of a whole node would take a quarter of
# an hour without a check.
EVICTIONS_SECONDS = 10.0

# A restart of the API server takes about a minute; an Event that cannot be posted for longer is only logged.
EVENT_PAUSES_SECONDS = (2.0, 5.0, 15.0, 40.0)


class Stop(Value):
    """Why the agent ended a round of its loop (observe, decide, apply) early. If `is_refusal` is true, a person must
    act, so an immediate retry is useless. If `is_stale` is true, another client changed the object first, so the agent
    only has to observe the cluster again."""

    why: str
    is_refusal: bool = False
    is_stale: bool = False


class Applied(Value, kw_only=True):
    """The result of applying a decision's actions. `memory` is the agent's memory, and contains the outcomes of the
    actions. `node` and `lock` are the Node and the lock after the last write. `stop` says why the agent skipped the
    remaining actions, and is None if the agent skipped no action."""

    memory: Memory
    is_node_written: bool = False
    node: NodeView | None = None
    """The Node after the last write. If it is None, the next round of the agent's loop must read the Node, because
    nothing was written or other clients are changing the Node."""
    node_written_at: float = 0.0
    """When the last write of the Node began. `node` may lack changes that other clients made after this time."""
    lock: LockReading | None = None
    """The lock after the last write; None if nothing was written."""
    lock_written_at: float = 0.0
    """When the last write of the lock began."""
    stop: Stop | None = None
    is_reported: bool = True
    """Whether the Events and messages were sent. Also true if there were none to send."""
    unsent: UnsentReports | None = None


class UnsentReports(Value, kw_only=True):
    """The Events and messages to people about a patch of the Node whose response from the API server was lost. The
    agent sends them only if it later finds the patch on the Node."""

    patch: PatchNode
    reports: tuple[PostEvent | Notify, ...]


async def _no_silence() -> None:
    """Does nothing, because an agent without an Alertmanager creates no silence."""


class Hands(Value, kw_only=True):
    """The clients, functions and values that `Applier` needs to apply actions."""

    node_name: str
    api: ClusterApi
    host: Host
    lock: LockStore
    chance: Callable[[], float]
    metrics: Metrics
    notify: Callable[[Notify], None]
    in_background: Callable[[Coroutine[Any, Any, object]], None]
    silence: Callable[[], Awaitable[None]] = _no_silence


class Applier:
    """Applies the actions of one decision. Each round of the agent's loop (observe, decide, apply) uses a new Applier.
    The Applier remembers when it confirmed the node's claim in the lock; the confirmation is valid in this round
    only."""

    def __init__(self, hands: Hands, memory: Memory, *, node_uid: str, remember: Callable[[Memory], None]) -> None:
        """`remember` is a function that stores the agent's memory. The Applier calls `remember` after each eviction
        request, and both before and after it asks the host to reboot. So the memory contains these actions even if the
        current round of the agent's loop is cancelled later."""
        self._hands = hands
        self._memory = memory
        self._node_uid = node_uid
        self._is_node_written = False
        self._is_anything_written = False
        self._node: NodeView | None = None
        self._node_written_at = 0.0
        self._lock: LockReading | None = None
        self._lock_written_at = 0.0
        self._confirmed_at: float | None = None
        self._remember = remember
        self._jitter = hands.chance()  # one for all evictions, so that pods refused together are retried together

    async def apply(self, actions: tuple[Action, ...]) -> Applied:
        """Applies the actions in order. Stops at the first action whose success is not certain."""
        for number, action in enumerate(actions):
            if stop := await self._do(action):
                return self._stopped(stop, action, reports_of(actions[number:]))
        return Applied(
            memory=self._memory,
            is_node_written=self._is_node_written,
            node=self._node,
            node_written_at=self._node_written_at,
            lock=self._lock,
            lock_written_at=self._lock_written_at,
        )

    def _stopped(self, stop: Stop, at: Action, rest: tuple[PostEvent | Notify, ...]) -> Applied:
        """Returns the result after the action `at` failed. If an earlier action has written something, sends the Events
        and messages in `rest` now, because the next round of the agent's loop does not report these writes."""
        if self._is_anything_written:
            self.tell(rest)
        unsent = (
            UnsentReports(patch=at, reports=rest)
            if isinstance(at, PatchNode) and not self._is_anything_written
            else None
        )
        return Applied(
            memory=self._memory,
            is_node_written=self._is_node_written,
            stop=stop,
            is_reported=self._is_anything_written,
            unsent=unsent,
        )

    def tell(self, reports: tuple[PostEvent | Notify, ...]) -> None:
        """Starts to send these Events and messages. Does not wait until they are sent."""
        for each in reports:
            if isinstance(each, PostEvent):
                self._post_event(each)
            else:
                self._notify(each)

    async def _do(self, action: Action) -> Stop | None:
        match action:
            case PatchNode():
                return await self._patch_node(action)
            case WriteLock():
                return await self._write_lock(action)
            case ConfirmClaim():
                return await self._confirm_claim(action)
            case Evict():
                return await self._evict(action)
            case AskReboot():
                return await self._ask_reboot(action)
            case SilenceAlerts():
                return await self._silence_alerts()
            case PostEvent():
                return self._post_event(action)
            case Notify():
                return self._notify(action)
            case _:
                assert_never(action)

    async def _patch_node(self, patch: PatchNode) -> Stop | None:
        if patch.send_before is not None and self._hands.host.uptime() >= patch.send_before:
            return Stop(f"{patch.purpose}: the patch was not sent, because it is based on facts that are too old")
        began = self._hands.api.clock.monotonic()
        match await patch_node(self._hands.api, self._hands.node_name, patch):
            case Landed(node):
                # After an uncordon the node controller removes its own taint, and so changes the Node's version. The
                # agent's next write of the Node follows at once and would conflict, so the agent reads the Node first.
                # After a cordon the node controller adds its taint. But the agent evicts pods next, so it needs no new
                # version yet. If the node has no pods to evict, the agent writes the Node next and conflicts once.
                self._node = None if patch.unschedulable is False else node
                self._is_node_written, self._is_anything_written, self._node_written_at = True, True, began
                return None
            case failed:
                return _stop(patch.purpose, failed)

    async def _write_lock(self, wanted: WriteLock) -> Stop | None:
        began = self._hands.api.clock.monotonic()
        match await self._hands.lock.write(wanted):
            case Landed(lock_now):
                self._is_anything_written = True
                self._lock, self._lock_written_at = lock_now, began
                return None
            case failed:
                return _stop(wanted.purpose, failed)

    async def _confirm_claim(self, claim: ConfirmClaim) -> Stop | None:
        # The age of the confirmation counts from the request: the answer lacks changes made after the server read it.
        asked_at = self._hands.api.clock.monotonic()
        try:
            reading: LockReading = await self._hands.lock.read()
        except ClusterError as error:
            return Stop(f"the agent cannot check whether the lock still contains its claim: {error}")
        if not lock.confirms(reading.content, claim.node, claim.claim):
            return Stop("the lock no longer contains this node's claim, or a person has paused the lock")
        self._confirmed_at = asked_at
        return None

    async def _ask_reboot(self, order: AskReboot) -> Stop | None:
        hands = self._hands
        if self._confirmed_at is None or hands.api.clock.monotonic() - self._confirmed_at >= order.within_seconds:
            return Stop("the agent does not reboot the host, because it checked the claim in the lock too long ago")
        if order.send_before is not None and hands.host.uptime() >= order.send_before:
            return Stop(
                "the agent does not reboot the host, because it wrote the announcement of the reboot too long ago"
            )
        self._set_memory(before_reboot_asked(self._memory))
        match await hands.host.ask_reboot():
            case reboot.RebootRequested():
                outcome, detail = RebootOutcome.ACCEPTED, ""
            case reboot.RebootRefused(why):
                outcome, detail = RebootOutcome.FAILED, why
            case reboot.RebootUnclear(why):
                outcome, detail = RebootOutcome.UNCLEAR, why
        hands.metrics.reboots_asked.labels(hands.node_name, outcome.value).inc()
        _LOG.log(
            logging.INFO if outcome is RebootOutcome.ACCEPTED else logging.WARNING,
            "the agent asked the host to reboot: %s",
            detail or outcome.value,
        )
        self._set_memory(after_reboot_asked(self._memory, outcome, detail))
        return None

    async def _evict(self, batch: Evict) -> Stop | None:
        """Evicts pods until the time limit for one round of the agent's loop is reached. The next round evicts the
        remaining pods."""
        clock, waiting = self._hands.api.clock, iter(batch.pods)
        until = clock.monotonic() + EVICTIONS_SECONDS

        async def one_after_another() -> None:
            for pod in waiting:
                asked = clock.monotonic()
                self._evicted(pod, await evict(self._hands.api, pod))
                if batch.parallel == 1:
                    await clock.sleep(max(0.0, ONE_BY_ONE_SECONDS - (clock.monotonic() - asked)))
                if clock.monotonic() >= until:
                    return

        await all_or_none(one_after_another() for _ in range(min(batch.parallel, len(batch.pods))))
        return None

    def _evicted(self, pod: EvictPod, result: Evicted) -> None:
        hands = self._hands
        hands.metrics.evictions.labels(hands.node_name, result.answer.value).inc()
        _LOG.info(
            "the answer to the eviction of pod %s/%s is: %s",
            pod.namespace,
            pod.name,
            result.answer.value,
            extra={"detail": result.detail} if result.detail else {},
        )
        self._set_memory(
            after_eviction(
                self._memory,
                pod_uid=pod.uid,
                answer=result.answer,
                uptime=hands.host.uptime(),
                jitter=self._jitter,
                detail=result.detail,
                retry_after_seconds=result.retry_after_seconds,
                new_pod_owner=pod.new_pod_owner,
            )
        )

    async def _silence_alerts(self) -> Stop | None:
        await self._hands.silence()
        return None

    def _post_event(self, told: PostEvent) -> Stop | None:
        hands = self._hands
        subject = Subject(kind="Node", name=hands.node_name, uid=self._node_uid)
        hands.in_background(
            post_event(
                hands.api,
                subject,
                reason=event_reason(told.code),
                sentence=told.sentence,
                is_warning=told.is_warning,
                host=hands.node_name,
                pauses=EVENT_PAUSES_SECONDS,
            )
        )
        return None

    def _notify(self, message: Notify) -> Stop | None:
        self._hands.notify(message)
        return None

    def _set_memory(self, memory: Memory) -> None:
        self._memory = memory
        self._remember(memory)


def reports_of(actions: tuple[Action, ...]) -> tuple[PostEvent | Notify, ...]:
    """Returns the Events and messages to people among these actions. If the actions also request a reboot, leaves out
    the messages, because the reboot is not confirmed yet."""
    is_asked = any(isinstance(each, ConfirmClaim | AskReboot) for each in actions)
    return tuple(each for each in actions if isinstance(each, PostEvent) or (isinstance(each, Notify) and not is_asked))


def _stop(purpose: str, failed: Rejected | Stale | StillUnclear) -> Stop:
    return Stop(f"{purpose}: {failed.why}", is_refusal=isinstance(failed, Rejected), is_stale=isinstance(failed, Stale))
