"""The pod whose cycle waits for an extender, and the bindings that wait for one."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.extenders.asked_ahead import AskedAhead, ExtenderCall
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.framework.runner import Nominated
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.running import binding
from scheduler_core.running.commands import AskExtender
from scheduler_core.running.parts import Parts
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value


class CycleInput(Value, eq=False):
    """What a cycle sees."""

    snapshot: Snapshot
    nominated: Nominated


@dataclass(slots=True, eq=False)
class HeldCycle:
    """What the cycle saw, and what it asked: the last of `calls` with `number`."""

    queued: QueuedPod
    number: int
    calls: list[ExtenderCall]
    seen: CycleInput


class Asking:
    """`ahead` None: extenders are asked inside the cycle."""

    def __init__(self, ahead: AskedAhead | None) -> None:
        self._ahead = ahead
        self.held: HeldCycle | None = None
        self._of_bindings: dict[str, list[ExtenderCall]] = {}

    def hold(
        self, parts: Parts, queued: QueuedPod, call: ExtenderCall, before: HeldCycle | None, seen: CycleInput
    ) -> None:
        """`before`: the same cycle, held for an earlier call."""
        number = parts.number()
        self.held = before or HeldCycle(queued, number, [], seen)
        self.held.number = number
        self.held.calls.append(call)
        parts.out.append(AskExtender(number=number, call=call))

    def answered(self, parts: Parts, number: int, answer: bytes | ExtenderError, now: float) -> HeldCycle | None:
        """The cycle to repeat, if the answer is about one. `done` must follow. Raises no error of the extender."""
        assert self._ahead is not None
        held, asked = self.held, parts.asked.pop(number, None)
        if asked is not None:
            uid, call = asked
            self._of_bindings.setdefault(uid, []).append(call)
            self._ahead.answered(call, answer)
            binding.told(parts, uid, now)
            if all(uid != other for other, _ in parts.asked.values()):
                self._forget(self._of_bindings.pop(uid))
        elif held is not None and held.number == number:
            self.held = None
            self._ahead.answered(held.calls[-1], answer)
            return held
        return None

    def done(self, cycle: HeldCycle) -> None:
        """Forgets the answers, unless the cycle asks more."""
        if self.held is not cycle:
            self._forget(cycle.calls)

    def _forget(self, calls: list[ExtenderCall]) -> None:
        assert self._ahead is not None
        for call in calls:
            self._ahead.forget(call)
