"""The line of waiting nodes in the lock: the nodes that come next, when they were named, and the nodes that were passed
over because they did not take a claim in time.

`order.py` decides which nodes are in the line, and in which order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler_core.values import Value

_MOST_NAMES = 256
"""The greatest number of names in the line of waiting nodes, and of names of nodes that were passed over: 256 of the
longest names take 64 KiB."""


class Line(Value, kw_only=True):
    """The line of waiting nodes in the lock. Usually the agent that last released or took a claim has written the line.
    A field keeps its default if the line is empty, or if the field's value is unknown."""

    names: tuple[str, ...] = ()  # the nodes that come next, in order
    at: str = ""  # RFC 3339: when they were named
    abreast: int | None = None  # how many of the first names may start beside the holders, by zone; None: no limit
    waiting: int = 0  # how many nodes waited then
    passed: tuple[str, ...] = ()  # named nodes that did not start; the order puts them last until they are ready again

    def naming(self, names: tuple[str, ...], *, at: str, waiting: int, abreast: int | None = None) -> Line:
        """Return the line of waiting nodes that consists of these names, in this order. `at` is the instant at which
        the nodes were named. `waiting` is how many nodes wait for a reboot. `abreast` is how many nodes at the head of
        the line are in the zone in which nodes reboot now; with None, the zones of the nodes do not matter. The list of
        nodes that were passed over stays the same."""
        if not names:
            return Line(waiting=waiting, passed=self.passed)
        return replace(self, names=names[:_MOST_NAMES], at=at, waiting=waiting, abreast=abreast)

    def without(self, node: str) -> Line:
        """Return the line of waiting nodes without this name. The instant `at`, when the nodes were named, stays the
        same."""
        if node not in self.names:
            return self
        is_abreast = self.abreast and self.names.index(node) < self.abreast
        return self.naming(
            tuple(name for name in self.names if name != node),
            at=self.at,
            waiting=self.waiting,
            abreast=self.abreast - 1 if self.abreast and is_abreast else self.abreast,
        )

    def keeping(self, waiting: Collection[str]) -> Line:
        """Return the line of waiting nodes with only those of its names that are also in `waiting`."""
        line = self
        for name in self.names:
            if name not in waiting:
                line = line.without(name)
        return line

    def one_fewer(self) -> Line:
        """Return the line with its number of waiting nodes reduced by one."""
        return replace(self, waiting=max(0, self.waiting - 1))

    def passing_over(self, names: Collection[str]) -> Line:
        """Return the line with these nodes added to the nodes that were passed over. These nodes were in the line and
        did not take a claim in time. If the list of nodes passed over becomes too long, its older names are dropped
        first."""
        before = [name for name in self.passed if name not in names]
        return replace(self, passed=tuple(sorted([*names, *before][:_MOST_NAMES])))

    def showing(self, node: str) -> Line:
        """Return the line with this node removed from the list of nodes that were passed over, because the node is
        ready again."""
        return replace(self, passed=tuple(name for name in self.passed if name != node))
