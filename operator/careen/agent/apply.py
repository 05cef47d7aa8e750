"""Applies a decision's actions in order, and stops at the first whose success is not certain. Then the next turn reads
the actual state."""

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
from careen.cluster.wire.writes import Dropped, Landed, Rejected, Stale, StillUnclear
from careen.core import losses
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
from scheduler_core.values import replace_value as replace

_LOG = logging.getLogger("careen.apply")

# The least time between two evictions: the replacement is scheduled before the next eviction, as forecasts assume.
# Current API servers take about as long to answer.
ONE_BY_ONE_SECONDS = 0.1

# Hold, pause and need are checked once in a turn. With a slow webhook the evictions of a whole node would take a
# quarter of an hour without a check.
EVICTIONS_SECONDS = 10.0

# A restart of the API server takes about a minute; an Event that cannot be posted for longer is only logged.
EVENT_PAUSES_SECONDS = (2.0, 5.0, 15.0, 40.0)


class Stop(Value):
    """Why a turn ended early. With `is_refusal` a person must act, so an immediate retry is useless. With `is_stale`
    another client changed the object first, so observing again is enough."""

    why: str
    is_refusal: bool = False
    is_stale: bool = False


class Applied(Value, kw_only=True):
    """What applying the actions changed. `stop` is None if no action was skipped."""

    memory: Memory
    is_node_written: bool = False
    node: NodeView | None = None
    """None if the next turn must read the Node: nothing was written, or other clients are changing it."""
    node_written_at: float = 0.0
    """When the last write of the Node began. `node` may lack later changes of other clients."""
    lock: LockReading | None = None
    """None if nothing was written."""
    lock_written_at: float = 0.0
    stop: Stop | None = None
    is_reported: bool = True
    """Also true if there was nothing to send."""
    unsent: UnsentReports | None = None


class UnsentReports(Value, kw_only=True):
    """Events and messages about a patch of the Node whose response was lost. They are sent only if the patch is later
    found on the Node."""

    patch: PatchNode
    reports: tuple[PostEvent | Notify, ...]


async def _no_silence() -> None:
    """An agent without an Alertmanager creates no silence."""


class Hands(Value, kw_only=True):
    """What `Applier` needs to apply actions."""

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
    """Applies the actions of one turn. Its confirmation of the claim is valid in this turn only."""

    def __init__(
        self,
        hands: Hands,
        memory: Memory,
        *,
        node_uid: str,
        remember: Callable[[Memory], None],
        before: NodeView | None = None,
    ) -> None:
        """`before` is the Node on which the actions are based; None: not known. `remember` stores the agent's memory.
        It is called after each write and eviction, and before and after the request for the reboot, so the memory has
        them even if the turn is cancelled."""
        self._hands = hands
        self._memory = memory
        self._node_uid = node_uid
        self._before = before
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
        """Stops at the first action whose success is not certain."""
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
        """Sends the Events and messages in `rest` now if an earlier action has written something, because the next turn
        does not report these writes."""
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
        """Sends in the background."""
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
            case Landed(node) | Dropped(node) as written:
                self._keep_account(patch, node)
                if isinstance(written, Dropped) and (stop := _dropped(patch, node, written)):
                    return stop
                # After an uncordon the node controller removes its own taint, so the Node's version changes. The
                # agent's next write follows at once and would conflict; so it reads the Node first. After a cordon the
                # node controller adds its taint, but evictions follow, which need no new version. Without pods to
                # evict, the next write of the Node conflicts once.
                self._node = None if patch.unschedulable is False else node
                self._is_node_written, self._is_anything_written, self._node_written_at = True, True, began
                return None
            case failed:
                return _stop(patch.purpose, failed)

    async def _write_lock(self, wanted: WriteLock) -> Stop | None:
        began = self._hands.api.clock.monotonic()
        match await self._hands.lock.write(wanted):
            case Landed(lock_now) | Dropped(lock_now) as written:
                is_kept = isinstance(written, Landed)
                account = losses.after_lock_write(
                    self._memory.losses,
                    wanted,
                    self._hands.node_name,
                    is_kept=is_kept,
                    uptime=self._hands.host.uptime(),
                )
                self._set_memory(replace(self._memory, losses=account))
                if isinstance(written, Dropped):
                    return Stop(f"{wanted.purpose}: {written.why}", is_refusal=True)
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
        """Evicts until the turn's time limit; the next turn evicts the rest."""
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

    def _keep_account(self, patch: PatchNode, node: NodeView) -> None:
        """Remembers which marks of the patch the answer has."""
        uptime = self._hands.host.uptime()
        account = losses.after_patch(self._memory.losses, patch, self._before, node, uptime=uptime)
        self._set_memory(replace(self._memory, losses=account))

    def _set_memory(self, memory: Memory) -> None:
        self._memory = memory
        self._remember(memory)


def reports_of(actions: tuple[Action, ...]) -> tuple[PostEvent | Notify, ...]:
    """The Events and messages among these actions; without the messages if the actions include the request for a
    reboot, which is not confirmed yet."""
    is_asked = any(isinstance(each, ConfirmClaim | AskReboot) for each in actions)
    return tuple(each for each in actions if isinstance(each, PostEvent) or (isinstance(each, Notify) and not is_asked))


def _dropped(patch: PatchNode, node: NodeView, dropped: Dropped[NodeView]) -> Stop | None:
    """Why the turn ends after an answer that lacks parts of the patch; None if no decision rests on them."""
    missing = losses.lacking(patch, node)
    text = f"{patch.purpose}: {dropped.why}: {', '.join(wish.title for wish in missing)}"
    if any(losses.stops(wish, patch) for wish in missing):
        return Stop(text, is_refusal=True)
    _LOG.warning("%s; the agent goes on without", text)
    return None


def _stop(purpose: str, failed: Rejected | Stale | StillUnclear) -> Stop:
    return Stop(f"{purpose}: {failed.why}", is_refusal=isinstance(failed, Rejected), is_stale=isinstance(failed, Stale))
