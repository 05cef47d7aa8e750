"""Sorts the waiting nodes of a planned roll-out once, because comparing thousands of nodes at every step would be slow.

Only order.py decides which node comes next. This module leaves out nodes that cannot be among the next few, because
enough nodes of the same kind come before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from itertools import islice

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.core.lock.content import LockContent
from careen.core.lock.order import among_alike, groups, line_length, need_since


class Waiters:
    """The waiting nodes by name and by kind. Two nodes of one kind differ only in how long they have needed a reboot,
    in the number of their moves, and in their name."""

    def __init__(self, nodes: Iterable[NodeView], policy: Policy) -> None:
        self._policy = policy
        # this order counts the moves again for every question
        by = _by_age if policy.order is Order.FEWEST_MOVES else among_alike
        self._nodes = {node.name: node for node in nodes}
        kinds: dict[tuple[object, ...], list[str]] = {}
        for node in sorted(self._nodes.values(), key=by):
            kind = (node.ready, node.is_control_plane, node.zone, tuple(sorted(groups(node, policy))))
            kinds.setdefault(kind, []).append(node.name)
        self._kinds = tuple(kinds.values())

    def __getitem__(self, name: str) -> NodeView:
        return self._nodes[name]

    def short_list(
        self, waiting: Collection[str], content: LockContent, movable: Callable[[str], int]
    ) -> list[NodeView]:
        """Returns enough of the waiting nodes to find the next nodes in line: the nodes that the line names already,
        and the first few nodes of each kind.

        The line has room for a certain number of names. So no more nodes of one kind are needed: either they fill the
        line, or one of them does not fit, and then no later node of its kind fits.
        """
        here = waiting if isinstance(waiting, AbstractSet) else set(waiting)
        holders = set(content.holders)
        most = line_length(content, self._policy)
        chosen = dict.fromkeys(name for name in content.line.names if name in here and name not in holders)
        for kind in self._kinds:
            chosen.update(
                dict.fromkeys(
                    self._first((name for name in kind if name in here and name not in holders), most, movable)
                )
            )
        return [self._nodes[name] for name in chosen]

    def _first(self, kind: Iterator[str], most: int, movable: Callable[[str], int]) -> Iterable[str]:
        return nsmallest(most, kind, key=movable) if self._policy.order is Order.FEWEST_MOVES else islice(kind, most)


def _by_age(node: NodeView) -> tuple[str, str]:
    return need_since(node), node.name
