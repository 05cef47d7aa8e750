"""When the windows of each node are open. A plan asks this thousands of times, so the calendar is searched once for
each group of nodes with the same windows, and again only when they open or close."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.windows import NamedWindow
from careen.core.windows import openings
from scheduler_core.values import Value

_FAR = timedelta(days=8)  # how far openings.py follows open windows


class _Stretch(Value):
    """A period in which the windows of a group stay open or closed; `until` is None if they never change again."""

    begin: datetime
    until: datetime | None
    is_open: bool

    def has(self, at: datetime) -> bool:
        return self.begin <= at and (self.until is None or at < self.until)


class WindowGroups:
    """The maintenance windows of each node, and when they are open."""

    def __init__(self, nodes: Iterable[NodeView], policy: Policy) -> None:
        groups: dict[tuple[NamedWindow, ...], int] = {}
        self._group_of = {
            node.name: groups.setdefault(openings.windows_of(policy, node.labels), len(groups)) for node in nodes
        }
        self._windows = tuple(groups)
        self._all = tuple(dict.fromkeys(each for windows in self._windows for each in windows))
        self._stretches: dict[int, _Stretch] = {}

    def is_open(self, name: str, at: datetime) -> bool:
        return self._stretch(self._group_of[name], at).is_open

    def are_all_open(self, at: datetime) -> bool:
        return all(self._stretch(group, at).is_open for group in range(len(self._windows)))

    def next_opening(self, at: datetime) -> datetime | None:
        """When the next group without an open window gets one; None if there is no such group or instant."""
        shut = (each for group in range(len(self._windows)) if not (each := self._stretch(group, at)).is_open)
        return min((each.until for each in shut if each.until is not None), default=None)

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second before the windows of all nodes are closed, such as 02:59:59 if the last one closes at
        03:00:00. The search starts at `at`, or at the next opening if none is open then. None if no window ever opens,
        or if some window is open at every instant of the eight days after the start."""
        opened = at if openings.is_open(self._all, at) else openings.change_after(self._all, at)
        shut = None if opened is None else openings.change_after(self._all, opened)
        return None if shut is None else shut - timedelta(seconds=1)

    def _stretch(self, group: int, at: datetime) -> _Stretch:
        known = self._stretches.get(group)
        if known is None or not known.has(at):
            windows = self._windows[group]
            is_open, until = openings.is_open(windows, at), openings.change_after(windows, at)
            known = _Stretch(at, at + _FAR if is_open and until is None else until, is_open)
            self._stretches[group] = known
        return known
