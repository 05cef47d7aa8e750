"""Workloads that lost pods to a drain recover before the agent releases its claim."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from math import inf

from drydock.checker.journal import Journal, Object, wanted_after
from drydock.checker.rule import Breach, rule
from drydock.checker.rules_of_the_lock import released_nodes

# An agent reads, decides and writes; it could not know of pods lost meanwhile by another node's drain.
_READ_BEFORE_SECONDS = 5.0
# The agent reads the owners' numbers of ready pods at most this long before the cordon, if the API server answers at
# once. If an answer was late, `answer_seconds` is added.
_COUNTED_BEFORE_SECONDS = 2.0


@rule(
    "settled",
    "the workloads that a drain displaced are healthy again before the drained node releases the lock",
)
def settled(journal: Journal) -> Iterator[Breach]:
    """At the release, each owner of evicted pods has at least as many ready pods as before the cordon, or as it wants
    now: somebody may have scaled it down or deleted it. Skips Jobs, because their pods may end."""
    parents = _deployments(journal)
    wanted = _wanted_over_time(journal)
    ready = _ready_over_time(journal, parents)
    cordons = [write for write in journal.writes("nodes") if write.cordons and write.agent == write.name]
    for write, before, after in journal.lock_writes():
        for node in released_nodes(write, before, after):
            since = max((c.at for c in cordons if c.name == node and c.at <= write.at), default=write.at)
            boots = [each.at for each in journal.hosts("booted", host=node) if since <= each.at <= write.at]
            if not boots:
                continue
            # The displaced pods were gone by then, so an older count would be from before the drain.
            seen_from = max(write.at - _READ_BEFORE_SECONDS, boots[-1])
            for owner, owner_name in sorted(_displaced(journal, parents, node, (since, write.at)).items()):
                ready_before = _fewest_before(ready[owner], since, _COUNTED_BEFORE_SECONDS + journal.answer_seconds)
                ready_now = _most_between(ready[owner], seen_from, write.at)
                if ready_now < min(ready_before, _fewest_between(wanted.get(owner, []), seen_from, write.at)):
                    yield Breach(
                        at=write.at,
                        sentence=f"{node} was removed from the lock while {owner_name} had {ready_now} ready pods, "
                        f"but {ready_before} before the drain",
                    )


Timeline = list[tuple[float, int]]
Owner = tuple[str, str]
"""The controller's uid, and its kind and name for messages."""


def _deployments(journal: Journal) -> dict[str, Owner]:
    """For each ReplicaSet's uid its Deployment: a roll-out moves the pods from one ReplicaSet to another."""
    sets = [write.after or write.before for write in journal.writes("replicasets")]
    return {each["metadata"]["uid"]: parent for each in sets if (parent := _controller(each)) != ("", "")}


def _ready_over_time(journal: Journal, parents: Mapping[str, Owner]) -> dict[str, Timeline]:
    """For each owner's uid: the times of writes to its pods, each with the number of its ready pods after the write."""
    ready: dict[str, set[tuple[str, str]]] = {}
    lines: dict[str, Timeline] = {}
    for write in journal.writes("pods"):
        owner = _owner(write.after or write.before, parents)[0]
        pods = ready.setdefault(owner, set())
        if _serves(write.after):
            pods.add(write.key)
        else:
            pods.discard(write.key)
        lines.setdefault(owner, []).append((write.at, len(pods)))
    return lines


def _wanted_over_time(journal: Journal) -> dict[str, Timeline]:
    """For each owner's uid, whatever its kind: the times of its writes, each with the number of pods that it wanted;
    none if it does not say."""
    lines: dict[str, Timeline] = {}
    for write in journal.writes():
        uid, wanted = write.uid, wanted_after(write)
        if write.plural != "pods" and uid and wanted is not None:
            lines.setdefault(uid, []).append((write.at, wanted))
    return lines


def _serves(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" not in (pod.get("metadata") or {}) and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )


def _owner(pod: Object, parents: Mapping[str, Owner]) -> Owner:
    controller = _controller(pod)
    return parents.get(controller[0], controller)


def _controller(obj: Object) -> Owner:
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference["uid"], f"{reference['kind']} {reference['name']}"
    return "", ""


def _displaced(journal: Journal, parents: Mapping[str, Owner], node: str, span: tuple[float, float]) -> dict[str, str]:
    """The owners of the pods that the node's agent evicted in this span, except Jobs: their pods also end without a
    drain."""
    since, until = span
    evicted = [w for w in journal.writes("pods") if w.verb == "evict" and w.agent == node and since <= w.at <= until]
    return {
        uid: name for uid, name in (_owner(w.before, parents) for w in evicted) if uid and not name.startswith("Job ")
    }


def _at(line: Timeline, instant: float) -> int:
    index = bisect_right(line, (instant, 1 << 30))
    return line[index - 1][1] if index else 0


def _fewest_before(line: Timeline, cordon: float, seconds: float) -> int:
    """The smallest number of ready pods during the last `seconds` before the cordon, but not before all pods were ready
    for the first time."""
    before = [(at, count) for at, count in line if at <= cordon]
    most = max((count for _, count in before), default=0)
    complete = next((at for at, count in before if count == most), cordon)
    start = max(cordon - seconds, complete)
    return min([_at(line, start), *(count for at, count in before if at >= start)])


def _fewest_between(line: Timeline, start: float, end: float) -> float:
    """Infinity if nobody says."""
    earlier = [count for at, count in line if at <= start][-1:]
    return min((*earlier, *(count for at, count in line if start <= at <= end)), default=inf)


def _most_between(line: Timeline, start: float, end: float) -> int:
    return max([_at(line, start), *(count for at, count in line if start <= at <= end)])
