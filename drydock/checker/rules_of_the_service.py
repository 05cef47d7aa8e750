"""What a roll-out may take away from those who use the workloads: pods that are not ready because of it when the next
node starts.

A set is the pods of one owner, whatever its kind; static pods of one name on all nodes are one set. Jobs and pods
without an owner are no sets: nobody waits for them to become ready again.

A pod is lost because of an agent if the agent evicted the pod while it was ready, or if the pod became unready or
vanished while the host went through a reboot that an agent asked for. Each pod of the set that becomes ready makes up
for one loss, whoever caused the other losses; and no set lacks more because of the agents than it lacks at all.

A person who takes a node's claim out of the lock, or the record off the Node, in the middle of a drain answers for what
that drain took: nobody else knows any more that its pods have to come back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from drydock.checker.journal import (
    AGENT_PREFIX,
    Entry,
    Fact,
    HostEvent,
    Journal,
    Object,
    Write,
    annotations_of,
    claim_on,
    claim_rows_in,
    claims_in,
    labels_of,
    wanted_after,
)
from drydock.checker.rule import Breach, rule

# The agent that released its claim read the pods at most this long before the next node's cordon.
_READ_BEFORE_SECONDS = 10.0
_OWNERS = ("replicasets", "statefulsets", "replicationcontrollers")
Key = tuple[str, str]


@dataclass(slots=True)
class _Set:
    """The pods of one owner."""

    name: str = ""
    labels: Object = field(default_factory=dict)
    namespace: str = ""
    ready: dict[Key, str] = field(default_factory=dict)
    """The node of each ready pod."""
    wanted: int | None = None
    """None: nobody says."""
    before: int = 0
    """How many were ready before the first loss that is not made up for."""
    lost: deque[str] = field(default_factory=deque)
    """The node of each loss that is not made up for."""
    ours_since: deque[tuple[float, int]] = field(default_factory=deque)
    """How many were unready because of the agents, and since when."""

    @property
    def ours(self) -> int:
        before = self.before if self.wanted is None else min(self.before, self.wanted)
        return max(0, min(len(self.lost), before - len(self.ready)))

    def lose(self, node: str) -> None:
        if not self.lost:
            self.before = len(self.ready) + 1
        self.lost.append(node)

    def gain(self) -> None:
        if self.lost:
            self.lost.popleft()

    def note(self, at: float) -> None:
        self.ours_since.append((at, self.ours))
        while len(self.ours_since) > 1 and self.ours_since[1][0] < at - 10 * _READ_BEFORE_SECONDS:
            self.ours_since.popleft()

    def fewest(self, since: float) -> int:
        """The smallest number since then: an agent may have read it."""
        later = [count for at, count in self.ours_since if at > since]
        earlier = [count for at, count in self.ours_since if at <= since][-1:]
        return min((*earlier, *later, self.ours))


@rule(
    "service",
    "when the next node starts, a set of pods lacks because of careen at most what its budget allows, or what the "
    "nodes with a claim held",
    Fact.OWNERS,
)
def service(journal: Journal) -> Iterator[Breach]:
    world = _World()
    for entry in journal.entries:
        if isinstance(entry, Write) and entry.cordons and entry.agent == entry.name:
            yield from _started(journal, world, entry)
        world.follow(journal, entry)


def _started(journal: Journal, world: _World, cordon: Write) -> Iterator[Breach]:
    since = cordon.at - _READ_BEFORE_SECONDS - journal.answer_seconds
    for each in world.sets.values():
        ours = each.fewest(since)
        if not ours:
            continue
        allowed, because = world.allowed(each, cordon.name)
        if ours > allowed:
            yield Breach(
                at=cordon.at,
                sentence=f"{cordon.name} started while {each.name} lacked {ours} pods because of "
                f"{', '.join(sorted(set(each.lost)))}; {because}",
            )
    world.held[cordon.name] = Counter(
        uid for uid, each in world.sets.items() for node in each.ready.values() if node == cordon.name
    )


class _World:
    """Pods, owners, budgets and claims, followed entry by entry."""

    def __init__(self) -> None:
        self.sets: dict[str, _Set] = {}
        self.held: dict[str, Counter[str]] = {}
        """For each node that started, the ready pods of each set on it."""
        self._claims: set[tuple[str, str]] = set()
        self._taken_over: set[str] = set()
        """The nodes whose claim a person took, until their agent takes another."""
        self._rebooting: set[str] = set()
        self._nodes: set[str] = set()
        self._budgets: dict[Key, Object] = {}

    def allowed(self, each: _Set, starting: str) -> tuple[int, str]:
        """How many pods of the set may be unready because of the agents, and why."""
        matching = [b for b in self._budgets.values() if _selects(b, each)]
        if matching:
            allowed = min(_allowance(budget, each.wanted or each.before) for budget in matching)
            return allowed, f"its budget allows {allowed}"
        uid = next(uid for uid, other in self.sets.items() if other is each)
        others = {name for name, _ in self._claims} - {starting}
        allowed = sum(self.held.get(name, Counter())[uid] for name in others)
        return allowed, f"the nodes with a claim ({', '.join(sorted(others)) or 'none'}) held {allowed}"

    def follow(self, journal: Journal, entry: Entry) -> None:
        if isinstance(entry, HostEvent):
            self._host(entry)
        elif isinstance(entry, Write):
            if journal.is_lock(entry):
                self._lock(entry)
            match entry.plural:
                case "nodes":
                    self._nodes = self._nodes | {entry.name} if entry.after else self._nodes - {entry.name}
                    if not entry.agent and claim_on(entry.before) and not claim_on(entry.after):
                        self._take_over({entry.name})
                case "pods":
                    self._pod(entry)
                case "poddisruptionbudgets":
                    self._budgets[entry.key] = entry.after
                case "daemonsets":
                    uid = entry.uid
                    status = entry.after.get("status") or {}
                    if uid in self.sets and (not entry.after or "desiredNumberScheduled" in status):
                        self.sets[uid].wanted = int(status.get("desiredNumberScheduled", 0))
                case _:
                    self._owner(entry)

    def _lock(self, write: Write) -> None:
        """An unreadable lock ends no claim: every agent waits until a person has put it right."""
        found = claims_in(write.after)
        if found is None:
            return
        before, self._claims = self._claims, claim_rows_in(write.after)
        if write.agent:
            self._taken_over -= {name for name, _ in self._claims - before}
        else:
            self._take_over({name for name, _ in before - self._claims})

    def _take_over(self, names: set[str]) -> None:
        self._taken_over |= names
        for each in self.sets.values():
            each.lost = deque(node for node in each.lost if node not in names)

    def _owner(self, write: Write) -> None:
        """How many pods the object wants, whatever its kind: those of a controller that was deleted are not missed."""
        if write.uid in self.sets or write.plural in _OWNERS:
            default = 1 if write.plural in _OWNERS else None
            self.sets.setdefault(write.uid, _Set()).wanted = wanted_after(write, default)

    def _host(self, event: HostEvent) -> None:
        if event.what == "asked":
            self._rebooting.add(event.host)
        elif event.what in ("ready", "refused", "ignored", "lost"):
            self._rebooting.discard(event.host)

    def _pod(self, write: Write) -> None:
        pod = write.after or write.before
        uid, name = _set_of(pod)
        if not uid:
            return
        each = self.sets.setdefault(uid, _Set())
        metadata = pod["metadata"]
        each.name, each.labels, each.namespace = name, labels_of(pod), metadata.get("namespace", write.key[0])
        was_ready_on = each.ready.get(write.key)
        node = str((pod.get("spec") or {}).get("nodeName", ""))
        if write.after and _serves(write.after):
            each.ready[write.key] = node
            if was_ready_on is None:
                each.gain()
        elif was_ready_on is not None:
            del each.ready[write.key]
            is_evicted = write.verb == "evict" and write.actor.startswith(AGENT_PREFIX)
            is_swept = node in self._rebooting and node in self._nodes
            if (is_evicted or is_swept) and node not in self._taken_over:
                each.lose(node)
        each.note(write.at)


def _set_of(pod: Object) -> Key:
    """The set's identity, and its name for messages; "" if the pod belongs to none."""
    metadata = pod["metadata"]
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    if (owner is not None and owner["kind"] == "Node") or "kubernetes.io/config.mirror" in annotations_of(pod):
        node = str((pod.get("spec") or {}).get("nodeName", ""))
        name = f"{metadata.get('namespace', '')}/{str(metadata['name']).removesuffix(node)}"
        return f"static {name}", f"the static pods {name}*"
    if owner is None or owner["kind"] == "Job":
        return "", ""
    return str(owner["uid"]), f"{owner['kind']} {owner['name']}"


def _serves(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" not in (pod.get("metadata") or {}) and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )


def _selects(budget: Object, each: _Set) -> bool:
    """Whether the budget's selector matches the set's pods. An empty selector matches all pods of the namespace."""
    if not budget or budget["metadata"].get("namespace", "") != each.namespace:
        return False
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    return all(each.labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _meets(each.labels, expression) for expression in selector.get("matchExpressions") or ()
    )


def _meets(labels: Object, expression: Object) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _allowance(budget: Object, size: int) -> int:
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        return _of(spec["maxUnavailable"], size)
    return max(0, size - _of(spec.get("minAvailable", 1), size))


def _of(number: Any, size: int) -> int:
    """The API server rounds percentages up."""
    text = str(number)
    return ceil(int(text[:-1]) * size / 100) if text.endswith("%") else int(text)
