"""What a roll-out may cost: a drain that does not end in a reboot is a try in vain, and each try moves each pod once.

A try begins with the cordon by the node's agent and ends when the host is asked to reboot, or with the uncordon. It is
undone in vain unless somebody ordered that: a person or another controller wrote on the Node or into the lock, the host
went down or lost its need, or its settings changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from drydock.checker.journal import (
    AgentEvent,
    Entry,
    HostEvent,
    Journal,
    Object,
    Write,
    annotations_of,
    is_cordoned,
    labels_of,
    taints_of,
)
from drydock.checker.rule import Breach, rule

MOST_UNDONE_A_DAY = 3
# An agent that has read the Node or the lock just before the order undoes the drain in its next turn.
_ORDERED_BEFORE_SECONDS = 10.0
_RETRY = "careen.dev/retry"


@dataclass(slots=True)
class _Try:
    """One drain of one node."""

    began: float
    pods: set[str]
    """The uids of the pods that were on the node since the cordon."""
    evicted: int = 0
    is_ordered: bool = False


@dataclass(slots=True)
class _Node:
    pods: dict[tuple[str, str], str] = field(default_factory=dict)
    drain: _Try | None = None
    ordered_at: float = float("-inf")
    undone: list[float] = field(default_factory=list)
    """When tries were undone in vain, since the last boot or the last retry of a person."""


@rule(
    "effort",
    "a drain evicts each pod once, and at most three drains of a node a day end without a reboot, each followed by a "
    "pause",
)
def effort(journal: Journal) -> Iterator[Breach]:
    nodes: dict[str, _Node] = {}
    for entry in journal.entries:
        if isinstance(entry, Write) and entry.plural == "pods":
            yield from _pod_written(nodes, entry)
        elif isinstance(entry, Write) and entry.plural == "nodes":
            yield from _node_written(journal, nodes.setdefault(entry.name, _Node()), entry)
        elif journal.is_lock(entry) and isinstance(entry, Write) and not entry.agent:
            for node in nodes.values():
                _order(node, entry)
        elif isinstance(entry, HostEvent):
            _host_event(nodes.setdefault(entry.host, _Node()), entry)
        elif isinstance(entry, AgentEvent) and entry.what == "ordered":
            _order(nodes.setdefault(entry.node, _Node()), entry)


def _order(node: _Node, entry: Entry) -> None:
    node.ordered_at = entry.at
    if node.drain is not None:
        node.drain.is_ordered = True


def _host_event(node: _Node, event: HostEvent) -> None:
    if event.what in ("asked", "booted"):
        node.drain, node.undone = None, []
    elif event.what in ("down", "lost"):
        _order(node, event)


def _pod_written(nodes: dict[str, _Node], write: Write) -> Iterator[Breach]:
    pod = write.after or write.before
    place = str((pod.get("spec") or {}).get("nodeName", ""))
    node = nodes.setdefault(place, _Node())
    if write.after:
        node.pods[write.key] = _uid(write, pod)
    else:
        node.pods.pop(write.key, None)
    drain = node.drain
    if drain is None:
        return
    drain.pods.add(_uid(write, pod))
    if write.verb == "evict" and write.agent == place:
        drain.evicted += 1
        if drain.evicted > len(drain.pods):
            yield Breach(
                at=write.at,
                sentence=f"the agent of {place} had {drain.evicted} evictions accepted in one drain of "
                f"{len(drain.pods)} pods",
            )


def _uid(write: Write, pod: Object) -> str:
    return str((pod.get("metadata") or {}).get("uid") or "/".join(write.key))


def _node_written(journal: Journal, node: _Node, write: Write) -> Iterator[Breach]:
    if not write.agent and _asks(write):
        _order(node, write)
        if _RETRY in annotations_of(write.after):
            node.undone = []
    if write.cordons and write.agent == write.name:
        if node.undone and write.at - node.undone[-1] < journal.pause_seconds:
            yield Breach(
                at=write.at,
                sentence=f"{write.name} was cordoned again {write.at - node.undone[-1]:.0f} s after a drain that did "
                f"not end in a reboot; the pause is {journal.pause_seconds:.0f} s",
            )
        is_ordered = write.at - node.ordered_at < _ORDERED_BEFORE_SECONDS
        node.drain = _Try(began=write.at, pods=set(node.pods.values()), is_ordered=is_ordered)
    elif node.drain is not None and not is_cordoned(write.after):
        if not node.drain.is_ordered:
            node.undone = [*(at for at in node.undone if write.at - at < journal.day_seconds), write.at]
            if len(node.undone) > MOST_UNDONE_A_DAY:
                yield Breach(
                    at=write.at,
                    sentence=f"{len(node.undone)} drains of {write.name} ended without a reboot within "
                    f"{write.at - node.undone[0]:.0f} s; at most {MOST_UNDONE_A_DAY} may within "
                    f"{journal.day_seconds:.0f} s",
                )
        node.drain = None


def _asks(write: Write) -> bool:
    """Whether somebody asks something of the agent, rather than that a kubelet reports."""
    return _asked(write.before) != _asked(write.after)


def _asked(node: Object) -> object:
    return (
        bool(node),
        is_cordoned(node),
        {key: value for key, value in annotations_of(node).items() if key.startswith("careen.dev/")},
        dict(labels_of(node)),
        {taint for taint in taints_of(node) if not taint[0].startswith("node.kubernetes.io/")},
    )
