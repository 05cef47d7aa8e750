"""What `replay` prints: the machine's commands, the decisions about a pod, or those of another configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.judge.answer import as_answer
from scheduler_core.running.machine import Attempt
from scheduler_core.running.record.lines import command_line
from scheduler_core.running.record.replay import Replay


class Reporter:
    """`pod`: "namespace/name", or every pod. With `is_explained`, the last decision comes with each node's verdict and
    scores. `other`: decides too, about each pod alone, in the cluster as the record's scheduler left it."""

    def __init__(self, *, pod: str = "", is_explained: bool = False, config: Mapping[str, Any] | None = None) -> None:
        self._pod = pod if not pod or "/" in pod else f"default/{pod}"
        self._is_explained = is_explained
        self._config = config
        self._attempts: list[Attempt] = []

    def see(self, attempt: Attempt) -> None:
        """For the machine of the replay."""
        if not self._pod or attempt.pod.key == self._pod:
            self._attempts.append(attempt)

    def lines(self, replay: Replay, until: float | None) -> Iterator[bytes]:
        """Raises what `Replay.calls` raises, after the lines before it. LookupError if there is no decision about the
        pod."""
        if not self._pod and self._config is None:
            for told in replay.calls(until):
                self._attempts.clear()
                yield from (command_line(told.at, each) for each in told.commands)
            return
        other = None if self._config is None else replay.scheduler(self._config)
        origin, last = replay.header.origin, None
        for _ in replay.calls(until):
            for attempt in self._attempts:
                if last is not None:
                    yield _line(last, other, origin)
                last = attempt
            self._attempts.clear()
        if last is not None:
            yield _line(last, other, origin, is_explained=self._is_explained)
        elif self._pod:
            raise LookupError(f"the record has no decision about pod {self._pod} until then")


def _line(attempt: Attempt, other: Scheduler | None, origin: float | None, *, is_explained: bool = False) -> bytes:
    line: dict[str, Any] = {"at": float(attempt.at)}
    if origin is not None:
        line["epoch"] = origin + attempt.at
    line["pod"] = attempt.pod.key
    line["uid"] = attempt.pod.uid
    if attempt.result is None:
        line["problem"] = attempt.problem
    else:
        line |= _decision(attempt.result, is_explained=is_explained)
    if other is not None and attempt.result is not None:
        line["other"] = decided = _decided_by(other, attempt, is_explained=is_explained)
        line["differs"] = _gist(decided) != _gist(line)
    return msgspec.json.encode(line) + b"\n"


def _decided_by(other: Scheduler, attempt: Attempt, *, is_explained: bool) -> dict[str, Any]:
    try:
        result = other.schedule(attempt.snapshot, attempt.pod, nominated=attempt.nominated)
    except NoProfileError as trouble:
        return {"problem": str(trouble)}
    return _decision(result, is_explained=is_explained)


def _decision(result: CycleResult, *, is_explained: bool) -> dict[str, Any]:
    decision: dict[str, Any] = {"node": result.node}
    if result.sentence:
        decision["sentence"] = result.sentence
    if result.preemption is not None:
        decision["preempts"] = {"node": result.preemption.node, "victims": list(result.preemption.victims)}
    if result.unknown:
        decision["unknown"] = result.unknown
    if is_explained:
        decision["answer"] = as_answer(result)
    return decision


def _gist(decision: Mapping[str, Any]) -> list[Any]:
    return [decision.get(key) for key in ("node", "sentence", "preempts", "unknown", "problem")]
