"""What the API server records: requests and writes, as lines of JSON and as entries of the checker's journal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from drydock.checker.journal import AgentEvent, Write
from drydock.server.store import ObjectChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """`at` and `seconds` are on the store's clock. `code` is 0 if the server sent no response."""

    at: float
    user: str
    agent: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    seconds: float
    dry_run: bool = False
    fault: str = ""

    def as_line(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def journal_line(change: ObjectChange) -> str:
    """The changed top-level fields with their new values."""
    before: Any = {} if change.before is None else change.before.content
    after: Any = {} if change.after is None else change.after.content
    changed = {field: after.get(field) for field in {*before, *after} if before.get(field) != after.get(field)}
    return json.dumps(
        {
            "at": round(change.at, 3),
            "actor": change.actor,
            "verb": change.verb,
            "resource": change.storage[1],
            "namespace": change.key[0],
            "name": change.key[1],
            "kind": change.kind,
            "changed": changed,
        },
        separators=(",", ":"),
        sort_keys=True,
    )


def writes_of(changes: Iterable[ObjectChange]) -> Iterator[Write]:
    for change in changes:
        yield Write(
            at=change.at,
            actor=change.actor,
            verb=change.verb,
            plural=change.storage[1],
            key=change.key,
            before={} if change.before is None else change.before.content,
            after={} if change.after is None else change.after.content,
        )


def sent_events(writes: Iterable[Write]) -> Iterator[AgentEvent]:
    for write in writes:
        if write.agent and write.plural == "events":
            yield AgentEvent(at=write.at, node=write.agent, what="sent", reason=str(write.after.get("reason", "")))
