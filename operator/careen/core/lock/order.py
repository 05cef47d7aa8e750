"""Decides the order of the waiting nodes, which of them may take a claim now, and how long each agent pauses before it
reads the lock again.

In the default order, zones are finished one after another. Within a zone, the node that has needed a reboot for longest
comes first. Among nodes whose need began in the same hour, the node with the fewest pods comes first in the first zone.
In later zones, the node with the fewest zone-bound pods comes first, because its other pods can move to rebooted nodes.
Control-plane nodes come last and one at a time. `--order` selects another order. A node that releases or takes a claim
lists the waiting nodes once and writes the next names into the lock, so that other agents rarely read the lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Budget, BudgetKind, Order, Policy
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.lock import content as lock
from careen.core.lock.content import Entry, LockContent, free_slots, slots_beside_holders
from careen.core.steps.shared import stagger
from scheduler_core.values import Value

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
PASSED_OVER_SECONDS = 60.0  # a named node that has not started by then loses its place
OTHERS_LOOK_SECONDS = 30.0
LONGEST_LOOK_SECONDS = 1200.0  # no agent pauses longer, so each notices a person's request within this time
LOOKS_PER_SECOND = 6  # over all waiting nodes; at two requests for each read, 5,000 nodes stay under 20 requests/s
COUNT_SECONDS = 120.0  # how long the count of a hand-over is valid; a moving roll-out counts at each hand-over
SPARE_NAMES = 12  # names beyond the free slots: a node must see its name before it may start, even after a long pause
SPARE_LOOKERS = 1  # nodes that read the lock nearly as often as the nodes that may take the next claim
GATHER_LOOKS_PER_SECOND = 100  # of all nodes that delay the first claim; with up to 300 agents, each pauses 3 s
GATHER_SECONDS = 3.0  # agents check their hosts every 2 s; taint, count and label take one more second

READY = "ready"
CONTROL_PLANE = Budget(kind=BudgetKind.CONTROL_PLANE, limit=1)
"""The budget that always applies: control-plane nodes go down one at a time."""


def budgets(policy: Policy) -> tuple[Budget, ...]:
    """Return the configured budgets, and the budget of the control plane that always applies."""
    return (*policy.budgets, CONTROL_PLANE)


def groups(node: NodeView, policy: Policy) -> dict[str, int]:
    """Return the groups of the Node, each with the smallest limit that a budget sets for the group."""
    found: dict[str, int] = {}
    for budget in budgets(policy):
        if group := budget.group_of(node.labels):
            found[group] = min(budget.limit, found.get(group, budget.limit))
    return found


def moves(node: NodeView) -> int:
    """Return how many pods a drain of the node would evict, according to an annotation of the Node. Without a readable
    number, return a huge number."""
    return _number(node, keys.MOVES, otherwise=_MORE_THAN_ANY)


def moves_in_zone(node: NodeView) -> int:
    """Return how many of the pods that a drain of the node would evict must stay in the node's zone, according to an
    annotation of the Node. Return 0 if this annotation has no readable number. If the number of all evicted pods is
    unknown (`moves` returns `_MORE_THAN_ANY`), return `_MORE_THAN_ANY`."""
    pods = moves(node)
    return pods if pods == _MORE_THAN_ANY else min(pods, _number(node, keys.MOVES_IN_ZONE, otherwise=0))


def _number(node: NodeView, key: str, *, otherwise: int) -> int:
    text = node.annotations.get(key, "")  # anyone may have written it
    return int(text) if text.isdecimal() and len(text) < len(str(_MORE_THAN_ANY)) else otherwise


def name_next(
    content: LockContent,
    waiters: Sequence[NodeView],
    policy: Policy,
    *,
    at: str,
    zone: str | None = None,
    leave_out: str = "",
    moves_of: Callable[[NodeView], int] = moves,
) -> LockContent:
    """Return the lock's content with a new line: the ready nodes that come next, in the order of `next_nodes`."""
    line = next_nodes(waiters, content, policy, zone=zone, leave_out=leave_out, moves_of=moves_of)
    waiting = {node.name for node in waiters if node.name != leave_out}
    before = replace(content.line, passed=tuple(name for name in content.line.passed if name in waiting))
    abreast = _abreast(line, content) if policy.order is Order.ZONE else None
    names = tuple(node.name for node in line)
    return content.with_line(before.naming(names, at=at, waiting=len(waiting), abreast=abreast))


def next_nodes(
    waiters: Sequence[NodeView],
    content: LockContent,
    policy: Policy,
    *,
    zone: str | None = None,
    leave_out: str = "",
    moves_of: Callable[[NodeView], int] = moves,
) -> list[NodeView]:
    """Return the ready nodes that come next, in order.

    A node that is already in the line keeps its place if the order allows that. Nodes that would exceed the budget of a
    group come last. `zone` is the zone in which nodes hold claims: its nodes come first, except with
    --order=fewest-moves. If there is no `zone`, no claim and no node in the line, a new roll-out begins in the zone
    that `_first_zone` chooses. With --order=fewest-moves, `moves_of` returns the number of a node's pods. With another
    order, the number is read from the Node.
    """
    not_in_line = {*content.holders, leave_out}
    still_waiting = [node for node in waiters if node.name not in not_in_line]
    candidates = [node for node in still_waiting if node.labels.get(keys.REBOOT_LABEL) == READY]
    match policy.order:
        case Order.OLDEST:
            key = _by_need(still_waiting, content, zone, candidates)
        case Order.ZONE:
            key = _by_zone(still_waiting, content, zone, candidates)
        case Order.FEWEST_MOVES:
            key = _by_moves(content, moves_of)
    return _by_room(sorted(candidates, key=key), content, policy, line_length(content, policy))


def line_length(content: LockContent, policy: Policy) -> int:
    """Return the length of the line: one node for every free slot, and a few more nodes, which then learn early that
    they come next."""
    return max(1, slots_beside_holders(content, policy.concurrency)) + SPARE_NAMES


_Key = Callable[[NodeView], tuple[bool | int | str, ...]]
Alike = tuple[str, int, int, str, str]
_Rank = tuple[bool, str, int, int]


def _by_need(
    waiters: Iterable[NodeView], content: LockContent, zone: str | None, candidates: Sequence[NodeView]
) -> _Key:
    working_zone, by_zone_and_need = _zone_by_zone(waiters, content, zone, candidates)
    return lambda node: (
        _may_not_come(node, content),
        _place(node, content),
        node.is_control_plane,
        node.zone != working_zone,
        *by_zone_and_need(node),
    )


def _by_zone(
    waiters: Iterable[NodeView], content: LockContent, zone: str | None, candidates: Sequence[NodeView]
) -> _Key:
    """Return the sort key of --order=zone. Worker nodes of the zone in which nodes reboot now come before worker nodes
    of other zones, even if nodes of other zones are already in the line. Otherwise a node of this zone whose gates pass
    late would wait until all other zones are done."""
    working_zone, by_zone_and_need = _zone_by_zone(waiters, content, None if content.entries else zone, candidates)
    return lambda node: (
        _may_not_come(node, content),
        node.is_control_plane,
        node.zone != working_zone,
        _place(node, content),
        *by_zone_and_need(node),
    )


def _zone_by_zone(
    waiters: Iterable[NodeView], content: LockContent, zone: str | None, candidates: Sequence[NodeView]
) -> tuple[str | None, _Key]:
    """Return two values. The first is the zone whose nodes come first: `zone`, or a computed zone if `zone` is None.
    The second is a key that sorts nodes by zone, and within a zone by the age of the need and the number of pods."""
    alike = {node.name: among_alike(node) for node in waiters}
    rank = _ranks(waiters, alike)
    working_zone = _zone_at_work(content, candidates, alike) if zone is None else zone
    return working_zone, lambda node: (
        *rank[node.zone],
        node.zone,
        *(alike[node.name] if node.zone == working_zone else in_later_zone(alike[node.name])),
    )


def _by_moves(content: LockContent, moves_of: Callable[[NodeView], int]) -> _Key:
    """Return the sort key of --order=fewest-moves. Nodes that are already in the line come before other nodes. The
    agent of another node rarely reads the lock, so at the head of the line, that node would begin its reboot late.
    Apart from that, the node whose drain moves the fewest pods comes first."""
    return lambda node: (
        _may_not_come(node, content),
        node.is_control_plane,
        node.name not in content.line.names,
        moves_of(node),
        need_since(node),
        node.name,
    )


def _may_not_come(node: NodeView, content: LockContent) -> bool:
    return node.name in content.line.passed or not node.ready


def _place(node: NodeView, content: LockContent) -> int:
    return content.line.names.index(node.name) if node.name in content.line.names else len(content.line.names)


def _ranks(waiters: Iterable[NodeView], alike: Mapping[str, Alike]) -> dict[str, _Rank]:
    """Return a sort key for each zone: the least key of its waiting nodes, including nodes that are not ready."""
    ranks: dict[str, _Rank] = {}
    for node in waiters:
        hour, in_zone, pods, *_ = in_later_zone(alike[node.name])
        mine = (node.is_control_plane, hour, in_zone, pods)
        ranks[node.zone] = min(ranks.get(node.zone, mine), mine)
    return ranks


def _zone_at_work(content: LockContent, candidates: Sequence[NodeView], alike: Mapping[str, Alike]) -> str | None:
    """Return the zone whose nodes come first: the zone of the oldest claim. Without claims, return the zone of the
    first node in the line; with an empty line, return the zone in which a roll-out begins."""
    if content.entries:
        return content.entries[0].zone
    named = [node for node in candidates if node.name in content.line.names]
    first = min(named, key=lambda node: _place(node, content), default=None)
    return first.zone if first else _first_zone(content, candidates, alike)


def _first_zone(content: LockContent, candidates: Sequence[NodeView], alike: Mapping[str, Alike]) -> str | None:
    """Return the zone in which a roll-out begins: the zone of the node whose drain costs least, among the nodes whose
    need began in the earliest hour. Control-plane nodes, nodes that are not ready and nodes that were passed over are
    considered only if there are no other candidates. Return None without candidates.

    The cost is A minus B. A is how many pods move twice if the roll-out begins with this node: all its pods, because no
    other node has rebooted. B is how many pods move twice if this zone comes later. Then the node that `in_later_zone`
    puts first is the zone's first node, and only its zone-bound pods move twice. Its other pods move to rebooted nodes.
    """
    able = [node for node in candidates if not _may_not_come(node, content)] or candidates
    ranks = _ranks(able, alike)

    def key(node: NodeView) -> tuple[bool | int | str, ...]:
        hour, pods, *_ = alike[node.name]
        *_, saved, _ = ranks[node.zone]
        cost = pods if pods == _MORE_THAN_ANY else pods - saved
        return node.is_control_plane, hour, cost, pods, node.zone

    first = min(able, key=key, default=None)
    return first.zone if first else None


def among_alike(node: NodeView) -> Alike:
    """Return the sort key of nodes that are equal in everything else: the hour in which the node's need began, the
    number of its pods, the number of its pods that must stay in the zone, the exact instant of the need, the name.

    If two needs began in the same hour of the UTC clock, the node with fewer pods comes first. When a roll-out drains
    its first node, no other node has rebooted, so all pods of the first node move to nodes that reboot later, and then
    move again. This key is for the zone whose nodes come first; `in_later_zone` returns the key for all other zones.
    """
    since = need_since(node)
    return since[: len("2026-01-05T10")], moves(node), moves_in_zone(node), since, node.name


def in_later_zone(alike: Alike) -> Alike:
    """Return the sort key of a node whose zone comes after another zone. `alike` is the node's key by `among_alike`.
    Zone-bound pods of this node may move to nodes that reboot later, and then move again. The other pods can move to
    rebooted nodes of an earlier zone. So the key compares first the zone-bound pods, and then all pods."""
    hour, pods, in_zone, since, name = alike
    return hour, in_zone, pods, since, name


_NEVER = "9999"
_MORE_THAN_ANY = 10**9


def _abreast(line: Sequence[NodeView], content: LockContent) -> int:
    """Return how many nodes at the head of the line are in the zone of the nodes that hold claims. If no node holds a
    claim, return the number for the zone of the first node in the line."""
    zones = lock.zones_at_work(content) or {node.zone for node in line[:1]}
    return next((count for count, node in enumerate(line) if {node.zone} != zones), len(line))


def need_since(node: NodeView) -> str:
    """Return when the agent first saw that the node needs a reboot (RFC 3339). Without a readable record, return a text
    that sorts last."""
    progress = node.record
    since = None if isinstance(progress, UnreadableProgress) else from_rfc3339(progress.need_since)
    return _NEVER if since is None else rfc3339(since)


def _by_room(candidates: Iterable[NodeView], content: LockContent, policy: Policy, most: int) -> list[NodeView]:
    """Return the candidates for the line, in order. The line has room for `most` nodes. Candidates that would exceed a
    budget of one of their groups come last."""
    used: dict[str, int] = {}
    for entry in content.entries:
        for group in entry.groups:
            used[group] = used.get(group, 0) + 1
    fitting: list[NodeView] = []
    others: list[NodeView] = []
    for node in candidates:
        mine = groups(node, policy)
        if all(used.get(group, 0) < most for group, most in mine.items()):
            fitting.append(node)
            for group in mine:
                used[group] = used.get(group, 0) + 1
            if len(fitting) == most:
                break
        else:
            others.append(node)
    return [*fitting, *others][:most]


class Clearance(Value, kw_only=True):
    """Whether this node may take a claim now. `places` is how many nodes at the head of the line may take a claim: one
    more for each minute in which no node takes one."""

    is_allowed: bool
    asks_waiters: bool  # no node is named: the step has to list the waiting nodes to know the order
    places: int
    memory: Memory
    gathers_for: float = 0.0  # seconds until a new roll-out starts; until then other nodes may become ready
    passed: tuple[str, ...] = ()  # the named nodes that had a minute each and did not start


def start_of(name: str, content: LockContent, policy: Policy, memory: Memory, uptime: float) -> Clearance:
    """Return whether the node `name` may take a claim. This depends on the names in the line, and on how long this
    process has seen a free slot."""
    free = free_slots(content, policy.concurrency)
    if free == 0:
        return Clearance(is_allowed=False, asks_waiters=False, places=0, memory=unwatched(memory))
    key = hand_over_key(content)
    if memory.line.key != key:
        memory = replace(memory, line=replace(memory.line, key=key, since=uptime))
    minutes = int((uptime - memory.line.since) // PASSED_OVER_SECONDS)
    if not content.line.names:
        left = 0.0 if content.holders else max(0.0, memory.line.since + gather_seconds(memory.agents) - uptime)
        return Clearance(is_allowed=False, asks_waiters=True, places=free + minutes, memory=memory, gathers_for=left)
    free, places = _places(content, policy, free, minutes)
    rank = content.line.names.index(name) if name in content.line.names else len(content.line.names)
    passed = tuple(each for each in content.line.names[: places - free] if each != name)
    return Clearance(is_allowed=rank < places, asks_waiters=False, places=places, memory=memory, passed=passed)


def unwatched(memory: Memory) -> Memory:
    """Return `memory` without the instant since which this process has seen a free slot, because the node does not wait
    for a slot now. When the node waits again, its agent measures anew how long a slot has been free."""
    return replace(memory, line=replace(memory.line, key="", since=0.0))


def gather_seconds(agents: int | None) -> float:
    """Return how many seconds a new roll-out waits before a node may take the first claim. Meanwhile other nodes can
    pass their gates, so that the order includes those nodes. `agents` is the number of nodes that run an agent, None if
    unknown. Return 0 if at most one node runs an agent."""
    if agents is not None and agents <= 1:
        return 0.0
    return GATHER_SECONDS + stagger.longest_seconds(agents)


def gather_pause_seconds(agents: int | None) -> float:
    """Return how many seconds pass between two reads of the lock by a node that delays the first claim of a roll-out
    (see `gather_seconds`). Another node may have taken a claim in the meantime."""
    return max(NEXT_LOOK_SECONDS, (agents or 0) / GATHER_LOOKS_PER_SECOND)


def hand_over_key(content: LockContent) -> str:
    """Return a text that changes when the line or the nodes with claims change. A waiting node then measures anew how
    long a slot has been free."""
    return f"{content.line.at} {' '.join(content.line.names)} {' '.join(content.holders)}"


def _places(content: LockContent, policy: Policy, free: int, minutes: int) -> tuple[int, int]:
    """Return how many nodes at the head of the line may try to take a claim in the first minute (`free`), and how many
    may try now (one more for each of the `minutes` without a new claim). 2 free slots give (2, 5) after 3 minutes, but
    the lock accepts 2 claims. With --order=zone and holders, both numbers count only nodes in the holders' zone."""
    if policy.order is not Order.ZONE or content.line.abreast is None:
        return free, free + minutes
    if content.holders:
        return min(free, content.line.abreast), min(free + minutes, content.line.abreast)
    free = min(free, content.line.abreast or free)
    return free, free + minutes


def how_many_wait(content: LockContent | None, agents: int | None, now: datetime) -> int:
    """Return how many nodes may be waiting. An agent that releases or takes a claim writes the number of waiting nodes
    into the lock. While that number is recent, return it. Later, or while the lock is paused, return at least the
    number of nodes with an agent, because more nodes may have begun to wait.

    `content` is None if the lock cannot be read. `agents` is the number of nodes that should run an agent, if known.
    """
    if content is None:
        return agents or 0
    counted_at = from_rfc3339(content.line.at)
    is_recent = counted_at is not None and abs((now - counted_at).total_seconds()) < COUNT_SECONDS
    return content.line.waiting if is_recent and not content.is_paused else max(content.line.waiting, agents or 0)


def paced(seconds: float, waiting: int, jitter: float) -> float:
    """Return the pause of a waiting node: `seconds`, or longer if so many nodes wait that all of them together would
    read the lock more than LOOKS_PER_SECOND times a second."""
    return max(seconds, waiting / LOOKS_PER_SECOND * (0.75 + 0.5 * jitter))


def look_again_seconds(
    name: str,
    content: LockContent,
    policy: Policy,
    jitter: float,
    *,
    waiting: int | None = None,
    now: datetime | None = None,
) -> float:
    """Return how many seconds a node that passes its gates waits before it reads the lock again. `waiting` is the
    result of `how_many_wait`, or None: then the number in the lock is used. `now` is None if the time is unknown.

    A node at the head of the line reads the lock every few seconds, so that it can take its claim soon after another
    node has released one. A node farther back reads the lock less often, to keep the number of requests small.
    """
    if now is not None and content.holders and content.line.names[:1] == (name,):
        return min(_first_pause_seconds(entry, now) for entry in content.entries)
    if name in content.line.names:
        at_once = lock.limit(content, policy.concurrency)
        places_to_go = content.line.names.index(name) + 1 - at_once
        if places_to_go <= SPARE_LOOKERS:
            return NEXT_LOOK_SECONDS if places_to_go <= 0 else SPARE_LOOK_SECONDS
        return _named_look_seconds(policy, rounds=math.ceil((places_to_go - SPARE_LOOKERS) / at_once))
    return paced(
        OTHERS_LOOK_SECONDS * (0.75 + 0.5 * jitter), content.line.waiting if waiting is None else waiting, jitter
    )


def _first_pause_seconds(holder: Entry, now: datetime) -> float:
    """Return how many seconds the first node in line pauses before it reads the lock again. Before the holder's
    expected release, the pause is the time until that release. Later, the pause grows with the holder's delay. The
    release is expected at `due` in the claim or, without `due`, `ROUND_SECONDS` after the claim began. The pause is at
    least `FIRST_LOOK_SECONDS` and at most `NEXT_LOOK_SECONDS`."""
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
