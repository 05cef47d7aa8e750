"""The journal that the checker judges, and what several rules read in it.

A journal says what happened, not what anybody intended. Three worlds keep one: the embedded API server, the tests'
fleet on virtual time, and the audit log of a real API server. The checker shares no code with the agents: its parsers
are written from the documentation, so they do not repeat the bugs of the agents' parsers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

LOCK_ANNOTATION = "weave.works/kured-node-lock"
TAINT = ("careen.dev/reboot", "PreferNoSchedule")
AGENT_PREFIX = "careen-agent-"

Object = Mapping[str, Any]


class Fact(StrEnum):
    """What a world may or may not be able to tell. A rule that needs a fact its world cannot tell is not judged."""

    NEEDS = "when hosts begin to need a reboot"
    END = "what is left at the end"
    BEGINNING = "the Nodes before the agents started"
    GROUPS = "how many nodes of a group may be down"
    EVENTS = "the Events that agents sent"
    DEATHS = "when agents died"
    EXITS = "whether agents exited by themselves"
    TURNS = "how each turn ended"
    OWNERS = "how many pods the owners want, and what budgets allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write: `actor` is `careen-agent-NODE` for an agent. `before` is empty for a new object, `after` for a deleted
    one. `verb` is `evict` for an eviction that the API server accepted."""

    at: float
    actor: str
    verb: str
    plural: str
    key: tuple[str, str]
    before: Object
    after: Object

    @property
    def name(self) -> str:
        return self.key[1]

    @property
    def uid(self) -> str:
        """Of the object; "" if it has none."""
        return str(((self.after or self.before).get("metadata") or {}).get("uid", ""))

    @property
    def agent(self) -> str:
        """The node of the agent that wrote, "" if no agent did."""
        return self.actor.removeprefix(AGENT_PREFIX) if self.actor.startswith(AGENT_PREFIX) else ""

    @property
    def cordons(self) -> bool:
        return self.plural == "nodes" and is_cordoned(self.after) and not is_cordoned(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """One line of the hosts' log. `what` is `need` (the host begins to need a reboot), `asked` (by an agent, to
    reboot), `refused` (the command failed), `ignored` (the host does nothing), `down`, `lost` (down by itself),
    `booted` or `ready` (the kubelet runs again)."""

    at: float
    host: str
    what: str
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """What an agent did outside the API's objects. `what` is `died` (killed, or with its host), `exited` (by itself),
    `broke` (a turn ended with an unexpected exception), `sent` (an Event with this reason) or `ordered` (somebody
    changed its settings, or the host's need, in a way that undoes drains)."""

    at: float
    node: str
    what: str
    reason: str = ""


Entry = Write | HostEvent | AgentEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The entries, oldest first, and what the world knows besides."""

    entries: Sequence[Entry]
    concurrency: int
    knows: Collection[Fact] = frozenset()
    alone: Collection[str] = ()
    """The nodes that nobody but agents takes down."""
    is_by_zone: bool = False
    """Whether nodes reboot zone by zone (`--order=zone`)."""
    daemon_set: tuple[str, str] = ("careen", "careen")
    taint_seconds: float = 10.0
    reboot_deadline_seconds: float = 0.0
    """0: unknown."""
    pause_seconds: float = 0.0
    """The shortest pause between a drain that an agent undid and its next; 0: unknown."""
    day_seconds: float = 86400.0
    """How long a day is for pauses: a world with short pauses has short days."""
    answer_seconds: float = 0.0
    """How late one answer was, or for how long an agent was frozen."""
    until: float = 0.0
    """The last observation: silence after the last entry counts too."""
    initial: Mapping[str, Object] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each node its groups, with the number of nodes of each that may be down at once."""

    @property
    def end(self) -> float:
        return max((self.until, *(entry.at for entry in self.entries)))

    def writes(self, plural: str = "", name: str = "") -> Iterator[Write]:
        return (
            entry
            for entry in self.entries
            if isinstance(entry, Write) and plural in ("", entry.plural) and name in ("", entry.name)
        )

    def hosts(self, *what: str, host: str = "") -> list[HostEvent]:
        return [
            entry
            for entry in self.entries
            if isinstance(entry, HostEvent) and (entry.what in what or not what) and host in ("", entry.host)
        ]

    def agents(self, what: str) -> list[AgentEvent]:
        return [entry for entry in self.entries if isinstance(entry, AgentEvent) and entry.what == what]

    def is_lock(self, entry: Entry) -> bool:
        return isinstance(entry, Write) and entry.plural == "daemonsets" and entry.key == self.daemon_set

    def with_entries(self, more: Iterable[Entry]) -> Journal:
        return replace(self, entries=in_order(self.entries, more))

    def node_at(self, name: str, at: float) -> Object:
        found: Object = {}
        for write in self.writes("nodes", name):
            if write.at <= at:
                found = write.after
        return found

    def lock_writes(self) -> Iterator[tuple[Write, dict[str, str], dict[str, str]]]:
        """Every write that changes the lock's holders, with the holders before and after; none while the lock is
        unreadable."""
        known: dict[str, str] = {}
        for write in self.writes("daemonsets"):
            if self.is_lock(write) and (after := claims_in(write.after)) is not None:
                before = claims_in(write.before)
                known = known if before is None else before
                if known != after:
                    yield write, known, after
                known = after


def in_order(*entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted((entry for some in entries for entry in some), key=lambda entry: entry.at))


# Nodes ------------------------------------------------------------------------------------------------------------


def is_cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_ready(node: Object) -> bool:
    return any(
        c["type"] == "Ready" and c["status"] == "True" for c in (node.get("status") or {}).get("conditions") or ()
    )


def in_service(node: Object) -> bool:
    return is_ready(node) and not is_cordoned(node)


def boot_id_of(node: Object) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


def taints_of(node: Object) -> set[tuple[str, str, str]]:
    """Key, effect and value of each taint."""
    return {(t["key"], t["effect"], t.get("value", "")) for t in (node.get("spec") or {}).get("taints") or ()}


def labels_of(node: Object) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("labels") or {}


def annotations_of(node: Object) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("annotations") or {}


def claim_on(node: Object) -> str:
    """The id of the claim in the Node's record, "" if there is none."""
    record = _json(annotations_of(node).get("careen.dev/progress", "{}"))
    return str(record.get("claim", "")) if isinstance(record, dict) else ""


# The lock ---------------------------------------------------------------------------------------------------------


def claims_in(daemon_set: Object) -> dict[str, str] | None:
    """The id of each holder's claim, "" for a claim without one; None if the lock is unreadable."""
    lock = _lock(daemon_set)
    return None if lock is None else {row["nodeID"]: str(row.get("id", "")) for row in _rows(lock)}


def wanted_after(write: Write, default: int | None = None) -> int | None:
    """How many pods the object wants after the write, whatever its kind: 0 if it was deleted, `default` if it does not
    say."""
    if not write.after:
        return 0
    replicas = (write.after.get("spec") or {}).get("replicas", default)
    return replicas if isinstance(replicas, int) else None


def claim_rows_in(daemon_set: Object) -> set[tuple[str, str]]:
    """Node and id of each claim, also of a node's second one; empty if the lock is unreadable."""
    return {(row["nodeID"], str(row.get("id", ""))) for row in _rows(_lock(daemon_set) or {})}


def failed_in(daemon_set: Object) -> dict[str, str]:
    """The node of each claim that is marked as failed, by the claim's id."""
    return {str(row.get("id", "")): row["nodeID"] for row in _rows(_lock(daemon_set) or {}) if row.get("failed")}


def doubles_in(daemon_set: Object) -> set[str]:
    """The nodes with more than one claim."""
    names = [row["nodeID"] for row in _rows(_lock(daemon_set) or {})]
    return {name for name in names if names.count(name) > 1}


def is_paused(daemon_set: Object) -> bool:
    lock = _lock(daemon_set) or {}
    return "manual" in (lock.get("nodeID"), *(row.get("nodeID") for row in _all_rows(lock)))


def _lock(daemon_set: Object) -> dict[str, Any] | None:
    text = annotations_of(daemon_set).get(LOCK_ANNOTATION)
    lock = _json(text) if text else {"nodeID": ""}
    return lock if isinstance(lock, dict) and ("nodeID" in lock or "locks" in lock) else None


def _all_rows(lock: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in lock.get("locks", [lock]) or () if isinstance(row, dict)]


def _rows(lock: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row for row in _all_rows(lock) if isinstance(row.get("nodeID"), str) and row["nodeID"] not in ("", "manual")
    ]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
