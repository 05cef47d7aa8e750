"""How long each agent pauses before it reads the lock again: the nodes at the head of the line look often, all waiting
nodes together rarely. And how long the first claim of a roll-out waits, until other nodes can have passed their gates,
so that the order includes them."""

from __future__ import annotations

import math
from datetime import datetime

from careen.core.facts.policy import Order, Policy
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import Entry, LockContent, limit

NEXT_LOOK_SECONDS = 3.0  # the next start follows a release within five seconds
FIRST_LOOK_SECONDS = 0.5  # the shortest pause of the first in line
# The first in line pauses for the smaller of two shares of the claim's age (or of the time since `due`).
FIRST_LOOK_SHARE = 1 / 12  # with this share, a roll-out takes at most 1/12 longer
EARLY_LOOK_SHARE = 1 / 4  # of the age beyond ROUND_SECONDS; this is smaller up to 12 s, when most short rounds end
ROUND_SECONDS = 8.0  # drain, reboot and return take at least this long; a faster node makes a roll-out wait 3 s longer
SPARE_LOOK_SECONDS = 5.0  # for the node right behind those that may start next: it moves up if one of them leaves
# farther down the line: nodes that cannot start leave it, so it may move faster than the reboots
NAMED_LOOK_SECONDS = (10.0, 25.0)
NAMED_ROUND_SECONDS = 5.0  # a node's pause per round ahead of it; below ROUND_SECONDS, because nodes leave the line
OTHERS_LOOK_SECONDS = 30.0
LONGEST_LOOK_SECONDS = 1200.0  # no agent pauses longer, so each notices a person's request within this time
LOOKS_PER_SECOND = 6  # over all waiting nodes; at two requests for each read, 5,000 nodes stay under 20 requests/s
COUNT_SECONDS = 120.0  # how long the count of a hand-over is valid; a moving roll-out counts at each hand-over
SPARE_LOOKERS = 1  # nodes that read the lock nearly as often as the nodes that may take the next claim
MANY_AGENTS = 500  # even a small API server takes this many patches in 2 s, the interval of the sentinel checks
SPREAD_SECONDS = 60.0  # over which the agents of a larger fleet stagger their soft taints
GATHER_SECONDS = 3.0  # agents check their hosts every 2 s; taint, count and label take one more second
GATHER_LOOKS_PER_SECOND = 100  # of all nodes that delay the first claim; with up to 300 agents, each pauses 3 s


def look_again_seconds(
    name: str,
    content: LockContent,
    policy: Policy,
    jitter: float,
    *,
    waiting: int | None = None,
    now: datetime | None = None,
) -> float:
    """The pause of a node that passes its gates: a few seconds at the head of the line, so that its claim follows a
    release soon; longer farther back. `waiting` is the result of `how_many_wait`; None: the number in the lock.
    `now` is None if the time is unknown."""
    if now is not None and content.holders and content.line.names[:1] == (name,):
        return min(_first_pause_seconds(entry, now) for entry in content.entries)
    if name in content.line.names:
        at_once = limit(content, policy.concurrency)
        places_to_go = content.line.names.index(name) + 1 - at_once
        if places_to_go <= SPARE_LOOKERS:
            return NEXT_LOOK_SECONDS if places_to_go <= 0 else SPARE_LOOK_SECONDS
        return _named_look_seconds(policy, rounds=math.ceil((places_to_go - SPARE_LOOKERS) / at_once))
    return paced(
        OTHERS_LOOK_SECONDS * (0.75 + 0.5 * jitter), content.line.waiting if waiting is None else waiting, jitter
    )


def _first_pause_seconds(holder: Entry, now: datetime) -> float:
    """The pause of the first in line: the time until the holder's expected release (`due`, or ROUND_SECONDS after the
    claim began), then longer with its delay."""
    due, created = from_rfc3339(holder.due), from_rfc3339(holder.created)
    since, least = (due, 0.0) if due is not None else (created, ROUND_SECONDS)
    passed = (now - since).total_seconds() if since is not None else -least
    pause = min(passed * FIRST_LOOK_SHARE, (passed - least) * EARLY_LOOK_SHARE)
    return min(max(FIRST_LOOK_SECONDS, least - passed, pause), NEXT_LOOK_SECONDS)


def _named_look_seconds(policy: Policy, rounds: int) -> float:
    shortest, longest = NAMED_LOOK_SECONDS
    # With another order, or when a budget has room again, any node of the line may be next.
    keeps_places = policy.order is Order.OLDEST and not policy.budgets
    return min(max(shortest, rounds * NAMED_ROUND_SECONDS), longest) if keeps_places else shortest


def paced(seconds: float, waiting: int, jitter: float) -> float:
    """`seconds`, or longer if all waiting nodes together would read the lock more than LOOKS_PER_SECOND times a
    second."""
    return max(seconds, waiting / LOOKS_PER_SECOND * (0.75 + 0.5 * jitter))


def how_many_wait(content: LockContent | None, agents: int | None, now: datetime) -> int:
    """How many nodes may be waiting: the number in the lock (None: unreadable) while it is recent; later, or while the
    lock is paused, at least the number of agents (None: unknown), because more nodes may have begun to wait."""
    if content is None:
        return agents or 0
    counted_at = from_rfc3339(content.line.at)
    is_recent = counted_at is not None and abs((now - counted_at).total_seconds()) < COUNT_SECONDS
    return content.line.waiting if is_recent and not content.is_paused else max(content.line.waiting, agents or 0)


def spread_seconds(agents: int | None) -> float:
    """The longest time that an agent of a fleet of this size waits before it sets its soft taint."""
    return 0.0 if agents is None or agents <= MANY_AGENTS else SPREAD_SECONDS


def gather_seconds(agents: int | None) -> float:
    """How long a new roll-out waits before its first claim, in a fleet of this size (None: unknown)."""
    if agents is not None and agents <= 1:
        return 0.0
    return GATHER_SECONDS + spread_seconds(agents)


def gather_pause_seconds(agents: int | None) -> float:
    """How long a node that delays the first claim pauses before it reads the lock again, where another node may have
    taken a claim."""
    return max(NEXT_LOOK_SECONDS, (agents or 0) / GATHER_LOOKS_PER_SECOND)
