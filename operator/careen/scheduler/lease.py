"""Leader election by a Lease: of several schedulers only one writes.

The election has a thread and connections of its own, so that nothing that keeps the scheduler busy can stop the
renewal. Source: tools/leaderelection/leaderelection.go of client-go, v0.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, NotFound
from scheduler_core.values import Value


class LeaseSettings(Value, kw_only=True):
    """As in `leaderElection` of a KubeSchedulerConfiguration. Seconds."""

    is_wanted: bool = True
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    """Without a renewal for so long, this process is no longer the leader and must end at once."""
    retry_seconds: float = 2.0
    namespace: str = "kube-system"
    name: str


class _Meta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """The parts of a coordination.k8s.io/v1 Lease that an election reads."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class LeaseStep(Enum):
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def next_step(lease: Lease | None, *, me: str, unchanged_seconds: float) -> LeaseStep:
    """`unchanged_seconds`: how long this process has seen the Lease without a change. Clocks of other machines are
    never compared."""
    if lease is None:
        return LeaseStep.CREATE
    if lease.spec.holder_identity == me:
        return LeaseStep.RENEW
    is_over = unchanged_seconds > (lease.spec.lease_duration_seconds or 0)
    return LeaseStep.TAKE if not lease.spec.holder_identity or is_over else LeaseStep.WAIT


def body(settings: LeaseSettings, step: LeaseStep, before: Lease | None, *, me: str, at: datetime) -> object:
    """The Lease that this step writes."""
    now = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = _Spec() if before is None else before.spec
    changes_hands = step is not LeaseStep.RENEW
    meta = {"name": settings.name, "namespace": settings.namespace}
    if before is not None:
        meta["resourceVersion"] = before.metadata.resource_version
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {
            "holderIdentity": me,
            "leaseDurationSeconds": int(settings.lease_seconds),
            "acquireTime": now if changes_hands else spec.acquire_time or now,
            "renewTime": now,
            "leaseTransitions": (spec.lease_transitions or 0) + (step is LeaseStep.TAKE),
        },
    }


class Won(Value, kw_only=True):
    """`was_taken`: another process held the Lease and did not release it; its last requests may still be on their
    way."""

    was_taken: bool


class Election:
    """`run` returns when the Lease is lost."""

    def __init__(
        self,
        api: ClusterApi,
        settings: LeaseSettings,
        *,
        me: str,
        on_won: Callable[[Won], None],
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`say`: who holds the Lease while this process waits, and why it cannot be read or written."""
        self._api = api
        self._settings = settings
        self._me = me
        self._on_won = on_won
        self._say = say or (lambda _text: None)
        self._said = ""
        self._seen: Lease | None = None
        self._seen_at = api.clock.monotonic()
        self.is_leader = False
        self.renewed_at = 0.0
        self.holder = ""
        """Who holds the Lease, as seen last."""

    async def run(self) -> None:
        """Competes for the Lease, then renews it until that fails for `renew_seconds`, or another process has it."""
        while True:
            try:
                async with asyncio.timeout(self._left()):
                    await self._try()
            except (ClusterError, TimeoutError) as error:  # the next try may succeed
                self._tell(type(error).__name__, f"cannot be read or written: {str(error) or 'no answer in time'}")
            else:
                self._tell(self.holder, "" if self.is_leader else f"is held by {self.holder}")
            left = self._left()
            if self.is_leader and (left == 0.0 or self.holder != self._me):
                self.is_leader = False
                return
            pause = self._settings.retry_seconds
            await self._api.clock.sleep(pause if left is None else min(pause, left))

    def _tell(self, what: str, text: str) -> None:
        """Once until something else happens."""
        if what != self._said:
            self._said = what
            if text:
                self._say(f"the Lease {self._settings.namespace}/{self._settings.name} {text}")

    def _left(self) -> float | None:
        """The seconds in which the leader must renew the Lease; None without a deadline."""
        if not self.is_leader:
            return None
        return max(0.0, self.renewed_at + self._settings.renew_seconds - self._api.clock.monotonic())

    async def release(self) -> None:
        """The next leader need not wait. Call it after the last write was answered."""
        if not self.is_leader or self._seen is None:
            return
        self.is_leader = False
        released = body(self._settings, LeaseStep.RENEW, self._seen, me="", at=self._api.clock.now())
        await self._api.replace(self._path, released, Lease)

    @property
    def _path(self) -> str:
        return f"{_leases(self._settings)}/{self._settings.name}"

    async def _try(self) -> None:
        lease = await self._read()
        now = self._api.clock.monotonic()
        if lease != self._seen:
            self._seen, self._seen_at = lease, now
        self.holder = "" if lease is None else lease.spec.holder_identity or ""
        step = next_step(lease, me=self._me, unchanged_seconds=now - self._seen_at)
        if step is LeaseStep.WAIT:
            return
        wanted = body(self._settings, step, lease, me=self._me, at=self._api.clock.now())
        if step is LeaseStep.CREATE:
            written = await self._api.post(_leases(self._settings), wanted, Lease)
        else:
            written = await self._api.replace(self._path, wanted, Lease)
        self._seen, self._seen_at, self.renewed_at = written, now, now
        had_holder, self.holder = bool(self.holder), self._me
        if not self.is_leader:
            self.is_leader = True
            self._on_won(Won(was_taken=had_holder))

    async def _read(self) -> Lease | None:
        try:
            return await self._api.get(self._path, Lease, timeout_seconds=_ANSWER_SECONDS)
        except NotFound:
            return None


_ANSWER_SECONDS: Final = 5.0


def _leases(settings: LeaseSettings) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
