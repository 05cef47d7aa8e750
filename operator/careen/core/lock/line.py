"""The line in the lock. `order.py` decides which nodes are in it, and in which order."""

from __future__ import annotations

from collections.abc import Collection

from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

_MOST_NAMES = 256
"""The most names in the line, and of nodes that were passed over: 256 of the longest names take 64 KiB."""


class Line(Value, kw_only=True):
    """Usually written by the agent that last released or took a claim. A field keeps its default if the line is empty,
    or if its value is unknown."""

    names: tuple[str, ...] = ()  # the nodes that come next, in order
    at: str = ""  # RFC 3339: when they were named
    abreast: int | None = None  # how many of the first names may start beside the holders, by zone; None: no limit
    waiting: int = 0  # how many nodes waited then
    passed: tuple[str, ...] = ()  # named nodes that did not start; the order puts them last until they are ready again

    def naming(self, names: tuple[str, ...], *, at: str, waiting: int, abreast: int | None = None) -> Line:
        """A new line of these names; the nodes that were passed over stay."""
        if not names:
            return Line(waiting=waiting, passed=self.passed)
        return replace(self, names=names[:_MOST_NAMES], at=at, waiting=waiting, abreast=abreast)

    def without(self, node: str) -> Line:
        """Without this name. `at` stays the same."""
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
        """With only those names that are also in `waiting`."""
        line = self
        for name in self.names:
            if name not in waiting:
                line = line.without(name)
        return line

    def one_fewer(self) -> Line:
        """With one waiting node fewer."""
        return replace(self, waiting=max(0, self.waiting - 1))

    def passing_over(self, names: Collection[str]) -> Line:
        """With these nodes, which did not take a claim in time, among those that were passed over. A list that becomes
        too long loses its older names."""
        before = [name for name in self.passed if name not in names]
        return replace(self, passed=tuple(sorted([*names, *before][:_MOST_NAMES])))

    def showing(self, node: str) -> Line:
        """Without this node among those that were passed over: it is ready again."""
        return replace(self, passed=tuple(name for name in self.passed if name != node))
