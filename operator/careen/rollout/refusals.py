"""What a stored refusal is about, and whether the present lock and Nodes still agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import age
from careen.core.gates.budgets import works
from careen.core.gates.gate_annotations import ON_THE_DAEMON_SET, gates_among
from careen.core.gates.halt import halted_because
from careen.core.gates.hold import held_because, until_of
from careen.core.lock.content import Garbage, LockContent
from careen.core.node.cordons import SOMEBODY, foreign_author
from careen.core.windows import openings
from scheduler_core.sentences import first_few
from scheduler_core.values import Value

_NODE = "node "
_DOWN = frozenset({Code.NODES_DOWN, Code.BUDGET_SPENT, Code.QUORUM})

PASSING = frozenset(
    {
        Code.LIMIT_REACHED,
        Code.ZONE_AT_WORK,
        Code.CLUSTER_INTERVAL,
        Code.PACKAGE_MANAGER,
        Code.SURPLUS,
        Code.WAITING_FOR_TURN,
    }
)
"""Refusals that end without a person, as other nodes or the host finish."""


class Surroundings(Value, kw_only=True):
    """What is true now: all Nodes by name, the lock, and the agents' policy, if it is known."""

    views: Mapping[str, NodeView]
    lock: LockContent | Garbage | Unknown
    now: datetime
    policy: Policy | None = None


def subjects_of(refusal: Refusal, node: str) -> tuple[str, ...]:
    """The things that a person can change, such as `budget shop/web`. A refusal about two budgets has two subjects;
    one about nothing in particular has one, empty or a sentence."""
    if refusal.about:
        return refusal.about
    if refusal.down and refusal.code in _DOWN:
        return tuple(f"{_NODE}{name}" for name in refusal.down)
    if refusal.code in {Code.HELD, Code.CORDONED}:
        return (f"{_NODE}{node}",)
    if refusal.code in {Code.PAUSED, Code.HALTED, Code.NO_WINDOW, Code.LIMIT_REACHED}:
        return ("",)
    return (refusal.sentence.replace(node, "the node"),)


def with_authors(refusal: Refusal, views: Mapping[str, NodeView], now: datetime) -> str:
    """The sentence with the client that cordoned a node, and when, where the Node was read with that: agents list Nodes
    without it."""
    sentence = refusal.sentence
    for name in down_in(refusal):
        node = views.get(name)
        if node is not None and node.unschedulable and (author := foreign_author(node)) != SOMEBODY:
            since = f" {age(node.cordoned_at, now)} ago" if node.cordoned_at is not None else ""
            sentence = sentence.replace(f"{name} is cordoned by {SOMEBODY}", f"{name} is cordoned by {author}{since}")
    return sentence


def named_in(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    """The nodes that these refusals say are down."""
    return tuple(dict.fromkeys(name for each in refusals for name in down_in(each)))


def disproof(refusal: Refusal, node: NodeView, present: Surroundings) -> str:
    """Why the refusal no longer holds, by lock and Nodes as they are now; "" if nothing speaks against it."""
    lock, now, policy = present.lock, present.now, present.policy
    if isinstance(lock, LockContent) and (told := _by_the_lock(refusal, node.name, lock)):
        return told
    match refusal.code:
        case Code.HELD if not held_because(node, now):
            return "the node has no hold"
        case Code.CORDONED if not node.unschedulable:
            return "the node is not cordoned"
        case Code.GATE_ANNOTATION if refusal.about and not _gates_left(refusal, node):
            return "the gate annotations are gone"
        case Code.OUTSIDE_WINDOW if policy is not None and openings.is_open(
            openings.windows_of(policy, node.labels), now
        ):
            return "a window has opened"
        case Code.NODES_DOWN | Code.BUDGET_SPENT | Code.QUORUM:
            return _nobody_down(refusal, present.views, lock)
        case _ if refusal.ends is not None and refusal.ends <= now:
            return "the time that it names is over"
        case _:
            return ""


def _by_the_lock(refusal: Refusal, node: str, lock: LockContent) -> str:
    match refusal.code:
        case Code.PAUSED if not lock.is_paused:
            return "the lock is not paused"
        case Code.HALTED if not halted_because(lock, besides=node):
            return "no failed node holds a claim"
        case Code.LOCK_GARBAGE | Code.LOCK_UNKNOWN:
            return "the lock can be read"
        case Code.LIMIT_REACHED | Code.ZONE_AT_WORK if not set(lock.holders) - {node}:
            return "no other node holds a claim"
        case _:
            return ""


def ends_of(refusal: Refusal, node: NodeView, present: Surroundings) -> datetime | None:
    """When the refusal ends by itself; None if unknown or never."""
    now, policy = present.now, present.policy
    match refusal.code:
        case Code.HELD:
            return until_of(node.annotations.get(keys.HOLD, ""))
        case Code.OUTSIDE_WINDOW if policy is not None:
            return openings.change_after(openings.windows_of(policy, node.labels), now)
        case _:
            return refusal.ends


def _nobody_down(refusal: Refusal, nodes: Mapping[str, NodeView], lock: LockContent | Garbage | Unknown) -> str:
    """The refusal names nodes that are down. It is over if as many as it lacks are in service again; an earlier release
    did not say how many, so then all must be."""
    down = down_in(refusal)
    if not down or not isinstance(lock, LockContent):
        return ""
    back = [name for name in down if _is_in_service(nodes.get(name), name, lock)]
    if len(back) < (refusal.lacks or len(down)):
        return ""
    return f"{first_few(back)} {'is' if len(back) == 1 else 'are'} in service"


def down_in(refusal: Refusal) -> tuple[str, ...]:
    """The nodes that the refusal says are down. An earlier release has them in `about`."""
    return refusal.down or tuple(each.removeprefix(_NODE) for each in refusal.about if each.startswith(_NODE))


def _gates_left(refusal: Refusal, node: NodeView) -> bool:
    """Those on the DaemonSet are not known here."""
    return bool(gates_among(node.annotations)) or any(each.endswith(ON_THE_DAEMON_SET) for each in refusal.about)


def _is_in_service(node: NodeView | None, name: str, lock: LockContent) -> bool:
    return node is not None and node.ready and not node.unschedulable and not works(node) and name not in lock.holders
