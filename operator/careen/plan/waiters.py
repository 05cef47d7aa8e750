"""The waiting nodes of a planned roll-out, sorted once, so that the order need not look at thousands of them
for every question.

Who comes next is decided in order.py alone: this only leaves out who cannot be among the next few, because
others that are alike come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from itertools import islice

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Order, Policy
from careen.core.lock.content import LockContent
from careen.core.lock.order import among_alike, groups, line_length, need_since


class Waiters:
    """Nodes by name, and in kinds: nodes of one kind differ for the order only in their need's age, their
    moves, and their name."""

    def __init__(self, nodes: Iterable[NodeView], policy: Policy) -> None:
        self._policy = policy
        by = (
            _by_age if policy.order is Order.FEWEST_MOVES else among_alike
        )  # there moves are counted anew for every question
        self._nodes = {node.name: node for node in nodes}
        kinds: dict[tuple[object, ...], list[str]] = {}
        for node in sorted(self._nodes.values(), key=by):
            kind = (node.ready, node.is_control_plane, node.zone, tuple(sorted(groups(node, policy))))
            kinds.setdefault(kind, []).append(node.name)
        self._kinds = tuple(kinds.values())

    def __getitem__(self, name: str) -> NodeView:
        return self._nodes[name]

    def short_list(self, waiting: Iterable[str], content: LockContent, movable: Callable[[str], int]) -> list[NodeView]:
        """Enough of these nodes for the order to find among them the same next ones as among all: the first of
        each kind, and who is named.

        As many of a kind as a line is long are enough. If all of those fit, the line is full before the next of
        the kind is looked at; if one does not, no later one of its kind fits."""
        here = set(waiting).difference(content.holders)
        most = line_length(content, self._policy)
        chosen = dict.fromkeys(name for name in content.line.names if name in here)
        for kind in self._kinds:
            chosen.update(dict.fromkeys(self._first((name for name in kind if name in here), most, movable)))
        return [self._nodes[name] for name in chosen]

    def _first(self, kind: Iterator[str], most: int, movable: Callable[[str], int]) -> Iterable[str]:
        return nsmallest(most, kind, key=movable) if self._policy.order is Order.FEWEST_MOVES else islice(kind, most)


def _by_age(node: NodeView) -> tuple[str, str]:
    return need_since(node), node.name
