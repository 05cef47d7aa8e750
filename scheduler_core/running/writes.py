"""Sends one write at a time for each pod: first its binding, then its deletion, then its status.

A later status replaces one that waits. So a status never arrives after the binding that was decided after it, and a
backlog of statuses never delays a binding of another pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler_core.running.commands import Bind, DeleteVictim, PatchVolume, Write, WriteStatus
from scheduler_core.values import Value

_ORDER: Final[dict[type, int]] = {PatchVolume: 0, Bind: 1, DeleteVictim: 2, WriteStatus: 3}
ANSWER_SECONDS: Final = 30.0
"""After this time an answer counts as lost. The shell's deadline for a request must be shorter."""


class Sent(Value):
    write: Write
    at: float


class Writes:
    """By uid of the pod, or by kind and key of the volume."""

    def __init__(self) -> None:
        self._flying: dict[str, Sent] = {}
        self._target_of: dict[int, str] = {}
        self._waiting: dict[str, dict[type, Write]] = {}
        self._paused: dict[tuple[type, str], float] = {}

    @property
    def in_flight(self) -> tuple[Write, ...]:
        return tuple(sent.write for sent in self._flying.values())

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def has(self, kind: type, uid: str) -> bool:
        """Whether a write of this kind is in flight or waits."""
        flying = self._flying.get(uid)
        return (flying is not None and isinstance(flying.write, kind)) or kind in self._waiting.get(uid, {})

    def is_busy(self, uid: str) -> bool:
        """Whether a write is in flight or waits."""
        return uid in self._flying or uid in self._waiting

    def ask(self, write: Write) -> None:
        self._waiting.setdefault(_target(write), {})[type(write)] = write

    def withdraw(self, uid: str, kind: type) -> bool:
        """One that waits; one in flight remains. Whether there was one."""
        waiting = self._waiting.get(uid, {})
        was_there = waiting.pop(kind, None) is not None
        if was_there and not waiting:
            del self._waiting[uid]
        return was_there

    def answered(self, number: int) -> Write | None:
        """The write with this number; None if it is not in flight (any more)."""
        target = self._target_of.pop(number, None)
        return None if target is None else self._flying.pop(target).write

    def pause(self, write: Write, until: float) -> None:
        """The API server refused it for now. Only writes of this kind and target wait, as a request of client-go does:
        a policy that refuses one namespace must not stop the others."""
        self._paused[type(write), _target(write)] = until

    def without_answer(self, now: float) -> list[Write]:
        return [sent.write for sent in self._flying.values() if now - sent.at >= ANSWER_SECONDS]

    def to_send(self, now: float, finished: Callable[[Write], Write]) -> list[Write]:
        """What may be sent now; it is in flight from then on. `finished` fills in what is known only now."""
        self._paused = {each: until for each, until in self._paused.items() if until > now}
        found: list[Write] = []
        for target in [target for target in self._waiting if target not in self._flying]:
            waiting = self._waiting[target]
            first = min(waiting, key=lambda kind: _ORDER[kind])
            if (first, target) in self._paused:
                continue
            write = finished(waiting.pop(first))
            if not waiting:
                del self._waiting[target]
            self._flying[target] = Sent(write, now)
            self._target_of[write.number] = target
            found.append(write)
        return found


def volume_target(kind: str, key: str) -> str:
    """Under which the writes to a volume or claim are known."""
    return f"{kind} {key}"


def _target(write: Write) -> str:
    return volume_target(write.kind, write.key) if isinstance(write, PatchVolume) else write.uid
