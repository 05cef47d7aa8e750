"""The evidence that the checker reads, and functions that several rules share.

The evidence is the API server's journal and the hosts' log: what agents did, not what they intended. The checker shares
no code with the agents: its parsers are written from the documentation, so that they do not repeat the bugs of the
agents' parsers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOCK_ANNOTATION = "weave.works/kured-node-lock"
TAINT = ("careen.dev/reboot", "PreferNoSchedule")
AGENT_PREFIX = "careen-agent-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write in the API server's journal: the actor, the time in seconds, the object before and after. `before` is
    empty if the write created the object. `after` is empty if the write deleted the object."""

    at: float
    actor: str
    verb: str
    plural: str
    key: tuple[str, str]
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def cordons(self) -> bool:
        """Whether this write cordoned the node."""
        return self.plural == "nodes" and is_cordoned(self.after) and not is_cordoned(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """One line of the hosts' log, with the host's boot id at that time. `what` is `need` when the host began to need a
    reboot, `asked` when an agent requested the reboot, `down` when the host went down, `booted` when the host had
    booted, and `ready` when its kubelet ran again."""

    at: float
    host: str
    what: str
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTrace:
    """All evidence of a roll-out. `is_complete` is False if the demo stopped the roll-out before its end."""

    writes: Sequence[Write]
    host_log: Sequence[HostEvent]
    concurrency: int
    daemon_set: tuple[str, str] = ("careen", "careen")
    taint_seconds: float = 10.0
    answer_seconds: float = 0.0  # how late one answer was, or for how long an agent was frozen
    is_complete: bool = True
    seen_until: float = 0.0  # the time of the last observation: silence after the last write counts too


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One violation of a rule: a sentence that says what happened, and the time in seconds on the API server's
    clock."""

    at: float
    sentence: str


def agent_node(actor: str) -> str:
    """Returns the node of the agent if the actor is an agent. Otherwise returns an empty text."""
    return actor.removeprefix(AGENT_PREFIX) if actor.startswith(AGENT_PREFIX) else ""


def writes_to(evidence: RolloutTrace, plural: str) -> Iterator[Write]:
    return (write for write in evidence.writes if write.plural == plural)


def events(evidence: RolloutTrace) -> list[Write | HostEvent]:
    """Returns writes and host events in one list, oldest first."""
    return sorted([*evidence.writes, *evidence.host_log], key=lambda event: event.at)


def is_cordoned(node: Mapping[str, Any]) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_ready(node: Mapping[str, Any]) -> bool:
    return any(
        c["type"] == "Ready" and c["status"] == "True" for c in (node.get("status") or {}).get("conditions") or ()
    )


def boot_id_of(node: Mapping[str, Any]) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


def taints_of(node: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """Returns the taints of the node, each as its key, effect and value."""
    return {(t["key"], t["effect"], t.get("value", "")) for t in (node.get("spec") or {}).get("taints") or ()}


def claim_on(node: Mapping[str, Any]) -> str:
    """Returns the id of the claim that is written in the Node's annotation, or an empty text if there is none."""
    try:
        record = json.loads(((node.get("metadata") or {}).get("annotations") or {}).get("careen.dev/progress", "{}"))
    except (ValueError, RecursionError):
        return ""
    return str(record.get("claim", "")) if isinstance(record, dict) else ""


def claims_in(daemon_set: Mapping[str, Any]) -> dict[str, str] | None:
    """Maps the name of each node with a claim in the lock to the id of this claim. The id is empty if the claim has
    none. Returns None if the lock is unreadable."""
    text = ((daemon_set.get("metadata") or {}).get("annotations") or {}).get(LOCK_ANNOTATION)
    if not text:
        return {}
    try:
        lock = json.loads(text)
    except (ValueError, RecursionError):
        return None
    rows = [
        row for row in lock.get("locks", [lock]) or () if isinstance(row, dict) and isinstance(row.get("nodeID"), str)
    ]
    return {row["nodeID"]: str(row.get("id", "")) for row in rows if row["nodeID"] not in ("", "manual")}


def lock_writes(evidence: RolloutTrace) -> Iterator[tuple[Write, dict[str, str], dict[str, str]]]:
    """Yields every write that changes the lock's holders, with the holders before and after. Skips writes while the
    lock is unreadable."""
    known: dict[str, str] = {}
    for write in writes_to(evidence, "daemonsets"):
        if write.key == evidence.daemon_set and (after := claims_in(write.after)) is not None:
            before = claims_in(write.before)
            known = known if before is None else before
            if known != after:
                yield write, known, after
            known = after


def released_nodes(write: Write, before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Returns the nodes whose claims an agent released with this write. Leaves out claims that a person removed."""
    return set(before) - set(after) if agent_node(write.actor) else set()
