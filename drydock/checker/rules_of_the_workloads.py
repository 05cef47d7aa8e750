"""The rule about workloads: workloads that lost pods to a drain must recover before the agent releases its claim and
the next node may begin its drain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from drydock.checker.evidence import Breach, RolloutTrace, agent_node, lock_writes, released_nodes, writes_to

# An agent reads, decides and writes; it could not know of pods lost meanwhile by another node's drain.
_READ_BEFORE_SECONDS = 5.0
# The agent reads the owners' numbers of ready pods at most this long before the cordon, if the API server answers at
# once. If an answer was late, `answer_seconds` is added.
_COUNTED_BEFORE_SECONDS = 2.0


def workloads_are_healthy_before_the_claim_is_released(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks each owner of evicted pods when the claim is released: the owner must have at least as many ready pods as
    before the node's cordon. Skips Jobs, because their pods may end."""
    ready = _ready_over_time(evidence)
    cordons = [w for w in writes_to(evidence, "nodes") if w.cordons and agent_node(w.actor) == w.key[1]]
    for write, before, after in lock_writes(evidence):
        for node in released_nodes(write, before, after):
            since = max((c.at for c in cordons if c.key[1] == node and c.at <= write.at), default=write.at)
            boots = [
                e.at for e in evidence.host_log if e.host == node and e.what == "booted" and since <= e.at <= write.at
            ]
            if not boots:
                continue
            # The displaced pods were gone by then, so an older count would be from before the drain.
            seen_from = max(write.at - _READ_BEFORE_SECONDS, boots[-1])
            for owner, owner_name in sorted(_displaced(evidence, node, since, write.at).items()):
                ready_before = _fewest_before(ready[owner], since, _COUNTED_BEFORE_SECONDS + evidence.answer_seconds)
                ready_now = _most_between(ready[owner], seen_from, write.at)
                if ready_now < ready_before:
                    yield Breach(
                        at=write.at,
                        sentence=f"{node} was removed from the lock while {owner_name} had {ready_now} ready pods, "
                        f"but {ready_before} before the drain",
                    )


Timeline = list[tuple[float, int]]


def _ready_over_time(evidence: RolloutTrace) -> dict[str, Timeline]:
    """Maps the uid of each owner to a list of pairs: the time of a write to one of the owner's pods, and the number of
    the owner's ready pods after this write."""
    ready: dict[str, set[tuple[str, str]]] = {}
    lines: dict[str, Timeline] = {}
    for write in writes_to(evidence, "pods"):
        owner = _owner(write.after or write.before)[0]
        pods = ready.setdefault(owner, set())
        if _serves(write.after):
            pods.add(write.key)
        else:
            pods.discard(write.key)
        lines.setdefault(owner, []).append((write.at, len(pods)))
    return lines


def _serves(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" not in (pod.get("metadata") or {}) and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )


def _owner(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the uid of the pod's controller, and the controller's kind and name for messages."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference["uid"], f"{reference['kind']} {reference['name']}"
    return "", ""


def _displaced(evidence: RolloutTrace, node: str, since: float, until: float) -> dict[str, str]:
    """Returns the owners of the pods that the node's agent evicted from `since` to `until`. Leaves out Jobs, because
    their pods also end without a drain."""
    evicted = [
        w
        for w in writes_to(evidence, "pods")
        if w.verb == "evict" and agent_node(w.actor) == node and since <= w.at <= until
    ]
    return {uid: name for uid, name in (_owner(w.before) for w in evicted) if uid and not name.startswith("Job ")}


def _at(line: Timeline, instant: float) -> int:
    index = bisect_right(line, (instant, 1 << 30))
    return line[index - 1][1] if index else 0


def _fewest_before(line: Timeline, cordon: float, seconds: float) -> int:
    """Returns the smallest number of ready pods during the last `seconds` before the cordon. Ignores the time before
    all pods were ready for the first time."""
    before = [(at, count) for at, count in line if at <= cordon]
    most = max((count for _, count in before), default=0)
    complete = next((at for at, count in before if count == most), cordon)
    start = max(cordon - seconds, complete)
    return min([_at(line, start), *(count for at, count in before if at >= start)])


def _most_between(line: Timeline, start: float, end: float) -> int:
    return max([_at(line, start), *(count for at, count in line if start <= at <= end)])
