"""Notices that etcd was restored from a backup: an object has a lower resourceVersion than this process has seen.

The lock may then lack claims of nodes that are down, and records may be older than what happened. The agent does
nothing until the lock is paused, and pauses it. A person ends the pause, when everybody has noticed and every node is
as it should be.

Kubernetes orders the resourceVersions of one resource by their number (KEP-5504); two resources may be in different
stores, so each object is compared with itself. A text that is no number says nothing.
"""

from __future__ import annotations

from careen.core.actions import PostEvent, WriteLock
from careen.core.decision import Decision, Reason
from careen.core.facts.memory import SeenVersions
from careen.core.facts.observation import NodeView, NotAsked
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.lock import changes, notation
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

CONFIRM_SECONDS = 5.0
"""A cache between agent and API server may be old for a moment; after a restore every read stays behind."""
_LOOK_SECONDS = 2.0
_AGAIN_SECONDS = 300.0  # a policy may forbid agents to pause; then a person does it


class Checked(Value):
    """What this turn knows of the versions, and the decision if no other may be made."""

    versions: SeenVersions
    decision: Decision | None = None


def check(seen: Observation, node: NodeView, phase: Phase, policy: Policy) -> Checked:
    """Compare, and pause the lock after a restore. With a paused lock, the older versions count from now on."""
    reading = seen.lock if isinstance(seen.lock, LockReading) else None
    known = seen.memory.versions
    node_at, lock_at = _number(node.resource_version), _number(reading.resource_version) if reading else None
    is_node_behind = node_at is not None and node_at < known.node
    is_lock_behind = lock_at < known.lock if lock_at is not None else known.is_lock_behind
    if not is_node_behind and not is_lock_behind:
        return Checked(SeenVersions(node=max(known.node, node_at or 0), lock=max(known.lock, lock_at or 0)))
    since = seen.uptime if known.behind_since is None else known.behind_since
    known = replace(known, behind_since=since, is_lock_behind=is_lock_behind)
    what = f"Node {node.name}" if is_node_behind else "the lock's DaemonSet"
    before, now = (known.node, node_at) if is_node_behind else (known.lock, lock_at)
    why = f"{what} has resourceVersion {now} after {before}, as if etcd was restored from a backup"
    if isinstance(seen.lock, NotAsked):
        return Checked(known, replace(_nothing(seen, phase, why), wants=frozenset({Evidence.LOCK})))
    content = reading.content if reading is not None else None
    if reading is None or not isinstance(content, LockContent) or seen.uptime - since < CONFIRM_SECONDS:
        return Checked(known, _nothing(seen, phase, why))
    if content.is_paused:
        return Checked(SeenVersions(node=node_at or 0, lock=lock_at or 0))
    if seen.uptime < known.pause_not_before:
        return Checked(known, _nothing(seen, phase, why))
    jitter = 0.5 + 0.5 * seen.chance.jitter
    known = replace(known, pause_not_before=seen.uptime + _AGAIN_SECONDS * jitter)
    return Checked(known, _pausing(_nothing(seen, phase, why), reading, content, policy, why))


def _nothing(seen: Observation, phase: Phase, why: str) -> Decision:
    return Decision(
        phase=phase,
        reason=Reason(code=Code.STORE_RESTORED, sentence=f"{why}; the agent does nothing until the lock is paused"),
        memory=seen.memory,
        look_again_seconds=_LOOK_SECONDS,
    )


def _pausing(decision: Decision, reading: LockReading, content: LockContent, policy: Policy, why: str) -> Decision:
    paused = changes.pause(content, f"{why}: check every node, then run `careen lock resume`", policy.concurrency)
    write = WriteLock(
        purpose="pause the lock after a restore of etcd",
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=notation.render(paused),
    )
    told = PostEvent(code=Code.STORE_RESTORED, sentence=f"{why}: the agent pauses the lock", is_warning=True)
    return replace(decision, actions=(told, write))


def _number(version: str) -> int | None:
    return int(version) if version.isascii() and version.isdigit() and len(version) <= 40 else None
