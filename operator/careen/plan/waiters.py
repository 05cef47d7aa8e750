"""A short list of the waiting nodes for `core/lock/order.py`: comparing thousands of nodes at every step would be slow.

Nodes of one kind are alike in their zone, their budget groups and a few other facts (see `Waiters`). If a kind has more
nodes than the line has places, its last nodes cannot be among the next few, unless they are already in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from itertools import islice
from typing import Final

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.core.lock.content import LockContent
from careen.core.lock.groups import groups
from careen.core.lock.order import Alike, among_alike, in_later_zone, line_length, need_since

_MOST_GONE: Final = 200  # skipping up to this many names in the lists is faster than making the lists again


class Waiters:
    """The waiting nodes by name and by kind: the same zone and budget groups, ready or not, control plane or not.

    Each kind has two sorted lists, because `core/lock/order.py` compares the nodes of the zone at work
    (`among_alike`) and of later zones (`in_later_zone`) in two ways. With --order=fewest-moves, each kind has one list,
    by the age of the need: the numbers of pods change during the roll-out, so `short_list` compares them at each call.
    """

    def __init__(self, nodes: Iterable[NodeView], policy: Policy) -> None:
        self._policy = policy
        # this order counts the moves again for every question
        by_age = policy.order is Order.FEWEST_MOVES
        self._nodes = {node.name: node for node in nodes}
        kinds: dict[tuple[object, ...], list[str]] = {}
        for number, by in enumerate((_by_age,) if by_age else (among_alike, _in_later_zone)):
            for node in sorted(self._nodes.values(), key=by):
                kind = (number, node.ready, node.is_control_plane, node.zone, *sorted(groups(node, policy)))
                kinds.setdefault(kind, []).append(node.name)
        self._every_kind = self._kinds = tuple(map(tuple, kinds.values()))
        self._gone: frozenset[str] = frozenset()  # names that `_kinds` lacks

    def __getitem__(self, name: str) -> NodeView:
        return self._nodes[name]

    def short_list(
        self, waiting: Collection[str], content: LockContent, movable: Callable[[str], int]
    ) -> list[NodeView]:
        """The nodes of the line, and the first nodes of each kind, as many as the line has places. If a node may not go
        next, no later node of its kind may either."""
        here = waiting if isinstance(waiting, AbstractSet) else set(waiting)
        holders = set(content.holders)
        most = line_length(content, self._policy)
        self._leave_out_gone(here, holders)
        chosen = dict.fromkeys(name for name in content.line.names if name in here and name not in holders)
        for kind in self._kinds:
            chosen.update(
                dict.fromkeys(
                    self._first((name for name in kind if name in here and name not in holders), most, movable)
                )
            )
        return [self._nodes[name] for name in chosen]

    def _leave_out_gone(self, here: AbstractSet[str], holders: AbstractSet[str]) -> None:
        """Removes the rebooted nodes from the lists whenever there are many, because every search has to skip them. If
        one of them waits again, restores the lists."""
        if not here.isdisjoint(self._gone):
            self._kinds, self._gone = self._every_kind, frozenset()
        if len(self._nodes) - len(self._gone) - len(here) - len(holders) > _MOST_GONE:
            self._gone = frozenset(self._nodes.keys() - here - holders)
            self._kinds = tuple(tuple(name for name in kind if name not in self._gone) for kind in self._every_kind)

    def _first(self, kind: Iterator[str], most: int, movable: Callable[[str], int]) -> Iterable[str]:
        return nsmallest(most, kind, key=movable) if self._policy.order is Order.FEWEST_MOVES else islice(kind, most)


def _in_later_zone(node: NodeView) -> Alike:
    return in_later_zone(among_alike(node))


def _by_age(node: NodeView) -> tuple[str, str]:
    return need_since(node), node.name
