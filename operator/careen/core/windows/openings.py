"""The windows of one node: it may reboot while at least one is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from careen.core.facts.policy import Policy
from careen.core.facts.windows import Cron, NamedWindow
from careen.core.windows import daily

_LONGEST_LOOK = timedelta(days=8)  # the search through windows that overlap goes no farther


def windows_of(policy: Policy, labels: Mapping[str, str]) -> tuple[NamedWindow, ...]:
    """The windows of a node with these labels: of the entries of --windows that select it, or without such an entry the
    window of kured's flags. With --windows and the flags' defaults, a node that no entry selects has none."""
    default = NamedWindow(name="", opens=policy.window)
    if not policy.windows:
        return (default,)
    chosen = tuple(each for each in policy.windows if each.nodes is None or each.nodes.matches(labels))
    return chosen or (() if policy.window.is_always_open else (default,))


def is_open(windows: Sequence[NamedWindow], now: datetime) -> bool:
    """Whether any of the windows is open."""
    return any(_is_open(each, now) for each in windows)


def change_after(windows: Sequence[NamedWindow], at: datetime) -> datetime | None:
    """When `is_open` next changes; None if no window ever opens, or if windows stay open for eight days."""
    now, instant = is_open(windows, at), at
    while instant <= at + _LONGEST_LOOK or not now:
        changes = [change for each in windows if (change := _change_after(each, instant)) is not None]
        if not changes:
            return None
        instant = min(changes)
        if is_open(windows, instant) is not now:
            return instant
    return None


def opens_within(windows: Sequence[NamedWindow], now: datetime, seconds: float) -> float | None:
    """The seconds until a window opens; None if none does within `seconds`, or one is open now."""
    if is_open(windows, now):
        return None
    opening = change_after(windows, now)
    found = None if opening is None else (opening - now).total_seconds()
    return found if found is not None and found <= seconds else None


def _is_open(window: NamedWindow, now: datetime) -> bool:
    if isinstance(window.opens, Cron):
        from careen.core.windows import cron

        return cron.is_open(window.opens, now, window)
    return daily.is_open(window.opens, now, window)


def _change_after(window: NamedWindow, at: datetime) -> datetime | None:
    if isinstance(window.opens, Cron):
        from careen.core.windows import cron

        return cron.change_after(window.opens, at, window)
    return daily.change_after(window.opens, at, window)
