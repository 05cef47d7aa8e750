"""Which waiting nodes come next, and in which order.

In the default order, the node that has needed a reboot for longest comes first. Needs of the same hour count as equally
old; among them, one node at a time: zones are finished one after another, and the node with the fewest pods comes first
(in later zones the node with the fewest zone-bound pods, because its other pods can move to rebooted nodes). Several
nodes at once: zones take turns, so that no wave drains a part of a zone onto the part that goes next.
Control-plane nodes come last and one at a time. `--order` selects another order. A node that releases or takes a claim
lists the waiting nodes once and writes the next names into the lock, so that other agents rarely read the lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.core.facts.times import rfc3339
from careen.core.lock.content import LockContent, limit, slots_beside_holders, zones_at_work
from careen.core.lock.groups import groups
from scheduler_core.values import replace_value as replace

READY = "ready"
SPARE_NAMES = 12  # names beyond the free slots: a node must see its name before it may start, even after a long pause
_NEVER = "9999"
_MORE_THAN_ANY = 10**9


def moves(node: NodeView) -> int:
    """How many pods a drain of the node would evict, by its annotation; a huge number without a readable one."""
    return _number(node, keys.MOVES, otherwise=_MORE_THAN_ANY)


def moves_in_zone(node: NodeView) -> int:
    """How many of these pods are zone-bound, by another annotation; 0 without a readable number, and a huge number if
    `moves` is unknown."""
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
    """The content with a new line, of `next_nodes`."""
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
    """The ready nodes that come next, in order.

    A node that is already in the line keeps its place if the order allows that. Nodes that would exceed the budget of a
    group come last. `zone` is the zone in which nodes hold claims: its nodes come first where zones are finished one
    after another. Without `zone`, claims and a line, such a roll-out begins in the zone that `_first_zone` chooses.
    `moves_of` counts a node's pods for --order=fewest-moves; other orders read the number from the Node.
    """
    not_in_line = {*content.holders, leave_out}
    still_waiting = [node for node in waiters if node.name not in not_in_line]
    candidates = [node for node in still_waiting if node.labels.get(keys.REBOOT_LABEL) == READY]
    match policy.order:
        case Order.OLDEST if limit(content, policy.concurrency) > 1:
            key = _by_turns(content, candidates)
        case Order.OLDEST:
            key = _by_need(still_waiting, content, zone, candidates)
        case Order.ZONE:
            key = _by_zone(still_waiting, content, zone, candidates)
        case Order.FEWEST_MOVES:
            key = _by_moves(content, moves_of)
    return _by_room(sorted(candidates, key=key), content, policy, line_length(content, policy))


def line_length(content: LockContent, policy: Policy) -> int:
    """A node for every free slot, and a few more, which learn early that they come next."""
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


def _by_turns(content: LockContent, candidates: Sequence[NodeView]) -> _Key:
    """For several nodes at once: the first nodes of all zones, then the second ones. The pods of a wave then find nodes
    of their zone that have rebooted in the wave before."""
    alike = {node.name: among_alike(node) for node in candidates}
    turns: dict[str, int] = {}
    zones: Counter[tuple[bool, bool, str]] = Counter()
    for node in sorted(candidates, key=lambda node: alike[node.name]):
        group = _may_not_come(node, content), node.is_control_plane, node.zone
        turns[node.name] = zones[group]
        zones[group] += 1
    return (
        lambda node: (
            _may_not_come(node, content),
            _place(node, content),
            node.is_control_plane,
            alike[node.name][0],  # the hour
            turns[node.name],
            *alike[node.name][1:],
        )
    )


def _by_zone(
    waiters: Iterable[NodeView], content: LockContent, zone: str | None, candidates: Sequence[NodeView]
) -> _Key:
    """For --order=zone. The workers of the zone in which nodes reboot now come even before nodes of other zones that
    are already in the line: otherwise a node whose gates pass late would wait until all other zones are done."""
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
    """The zone whose nodes come first, and a key that sorts by zone, and within a zone by the age of the need and the
    number of pods."""
    alike = {node.name: among_alike(node) for node in waiters}
    rank = _ranks(waiters, alike)
    working_zone = _zone_at_work(content, candidates, alike) if zone is None else zone
    return working_zone, lambda node: (
        *rank[node.zone],
        node.zone,
        *(alike[node.name] if node.zone == working_zone else in_later_zone(alike[node.name])),
    )


def _by_moves(content: LockContent, moves_of: Callable[[NodeView], int]) -> _Key:
    """For --order=fewest-moves. Nodes that are already in the line come first: the agent of another node rarely reads
    the lock, so it would begin its reboot late."""
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
    """Each zone's sort key: the least key of its waiting nodes, including nodes that are not ready."""
    ranks: dict[str, _Rank] = {}
    for node in waiters:
        hour, in_zone, pods, *_ = in_later_zone(alike[node.name])
        mine = (node.is_control_plane, hour, in_zone, pods)
        ranks[node.zone] = min(ranks.get(node.zone, mine), mine)
    return ranks


def _zone_at_work(content: LockContent, candidates: Sequence[NodeView], alike: Mapping[str, Alike]) -> str | None:
    """The zone whose nodes come first: that of the oldest claim, of the first node in the line, or the one in which a
    roll-out begins."""
    if content.entries:
        return content.entries[0].zone
    named = [node for node in candidates if node.name in content.line.names]
    first = min(named, key=lambda node: _place(node, content), default=None)
    return first.zone if first else _first_zone(content, candidates, alike)


def _first_zone(content: LockContent, candidates: Sequence[NodeView], alike: Mapping[str, Alike]) -> str | None:
    """The zone in which a roll-out begins: that of the node whose drain costs least, among the nodes whose need began
    in the earliest hour. Control-plane nodes, nodes that are not ready and nodes that were passed over count only if
    there are no other candidates. None without candidates.

    The cost is A minus B. A: the pods that move twice if the roll-out begins with this node, that is all its pods,
    because no other node has rebooted. B: the pods that move twice if this zone comes later, that is only the
    zone-bound pods of the node that `in_later_zone` puts first; its other pods move to rebooted nodes.
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
    """The key of nodes that are equal in everything else, in the zone that comes first: the UTC hour in which the need
    began, pods, zone-bound pods, the exact instant of the need, the name.

    Fewer pods come first, because no other node has rebooted when a roll-out drains its first node: all its pods move
    to nodes that reboot later, and then move again.
    """
    since = need_since(node)
    return since[: len("2026-01-05T10")], moves(node), moves_in_zone(node), since, node.name


def in_later_zone(alike: Alike) -> Alike:
    """The same key for a node of a later zone: zone-bound pods come before all pods, because only they may move to
    nodes that reboot later; the others can move to rebooted nodes of an earlier zone."""
    hour, pods, in_zone, since, name = alike
    return hour, in_zone, pods, since, name


def need_since(node: NodeView) -> str:
    """When the agent first saw the need (RFC 3339); without a readable record, a text that sorts last."""
    since = node.need_since
    return _NEVER if since is None else rfc3339(since)


def _abreast(line: Sequence[NodeView], content: LockContent) -> int:
    """How many nodes at the head of the line are in the holders' zone, or, without holders, in that of the first
    node."""
    zones = zones_at_work(content) or {node.zone for node in line[:1]}
    return next((count for count, node in enumerate(line) if {node.zone} != zones), len(line))


def _by_room(candidates: Iterable[NodeView], content: LockContent, policy: Policy, most: int) -> list[NodeView]:
    """The first `most` candidates. Those that would exceed a budget of one of their groups come last."""
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
