"""The line of waiting nodes as the lock holds it: who comes next, when they were named, and who was passed over.

Who belongs into it, and in which order, is decided in `order.py`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler_core.values import Value

_MOST_NAMES = 256
"""As many are written into a line, or as passed over: 64 KiB of the longest names."""


class Line(Value, kw_only=True):
    """What the last hand-over wrote; a field keeps its default where nobody is named, or nothing is known."""

    names: tuple[str, ...] = ()  # who comes next, in order
    at: str = ""  # RFC 3339: when they were named
    abreast: int | None = None  # so many of them, from the first, may work beside the holders: one zone; None: any
    waiting: int = 0  # how many nodes waited then
    passed: tuple[str, ...] = ()  # named before and did not come: named last until they show themselves again

    def naming(self, names: tuple[str, ...], *, at: str, waiting: int, abreast: int | None = None) -> Line:
        """The line that hands the turn to these nodes, in this order; who was passed over stays so."""
        if not names:
            return Line(waiting=waiting, passed=self.passed)
        return replace(self, names=names[:_MOST_NAMES], at=at, waiting=waiting, abreast=abreast)

    def without(self, node: str) -> Line:
        """The line in which this node is not named any more. The others keep the instant of their hand-over."""
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
        """The line in which only those of the named are left that still wait."""
        line = self
        for name in self.names:
            if name not in waiting:
                line = line.without(name)
        return line

    def one_fewer(self) -> Line:
        """The line once one node of those that were counted waits no more."""
        return replace(self, waiting=max(0, self.waiting - 1))

    def passing_over(self, names: Collection[str]) -> Line:
        """The line that remembers who was named and did not come; the latest where they are too many."""
        before = [name for name in self.passed if name not in names]
        return replace(self, passed=tuple(sorted([*names, *before][:_MOST_NAMES])))

    def showing(self, node: str) -> Line:
        """The line in which this node is no longer one that did not come."""
        return replace(self, passed=tuple(name for name in self.passed if name != node))
