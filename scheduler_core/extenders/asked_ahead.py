"""Extenders that are asked outside of the cycle.

A cycle that needs an answer which is not there stops with `Unanswered`. Whoever called it asks the extender, and
repeats the cycle with the answer: an extender that is slow delays cycles, but not their caller.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler_core.config.configuration import ExtenderSettings
from scheduler_core.extenders.protocol import ExtenderError, ExtenderTransport
from scheduler_core.values import Value


class ExtenderCall(Value):
    """`extender`: its place in the configuration."""

    extender: int
    verb: str
    body: bytes


class Unanswered(BaseException):
    """Not an Exception: nothing in a cycle may take it for the failure of a plugin."""

    def __init__(self, call: ExtenderCall) -> None:
        super().__init__(call)
        self.call = call


class AskedAhead:
    """`connect` reaches an extender; give `transport` to the Scheduler instead of it."""

    def __init__(self, connect: Callable[[ExtenderSettings], ExtenderTransport]) -> None:
        self._connect = connect
        self._behind: list[ExtenderTransport] = []
        self._answers: dict[ExtenderCall, bytes | ExtenderError] = {}
        self.is_blocking = False
        """Ask at once, and wait for the answer."""

    def transport(self, settings: ExtenderSettings) -> ExtenderTransport:
        self._behind.append(self._connect(settings))
        return _Asked(self, len(self._behind) - 1)

    def ask(self, call: ExtenderCall) -> bytes:
        """Blocks: for another thread. Raises ExtenderError."""
        return self._behind[call.extender].post(call.verb, call.body)

    def answered(self, call: ExtenderCall, answer: bytes | ExtenderError) -> None:
        """For the cycles until `forget`."""
        self._answers[call] = answer

    def forget(self, call: ExtenderCall) -> None:
        self._answers.pop(call, None)

    def post(self, call: ExtenderCall) -> bytes:
        """For the extenders of the Scheduler. Raises Unanswered, or the ExtenderError with which the call ended."""
        if self.is_blocking:
            return self.ask(call)
        answer = self._answers.get(call)
        if answer is None:
            raise Unanswered(call)
        if isinstance(answer, ExtenderError):
            raise answer
        return answer


class _Asked:
    def __init__(self, ahead: AskedAhead, number: int) -> None:
        self._ahead = ahead
        self._number = number

    def post(self, verb: str, body: bytes) -> bytes:
        return self._ahead.post(ExtenderCall(self._number, verb, body))
