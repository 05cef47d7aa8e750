"""Refuses outside the maintenance window: days, start, end, zone.

A window that wraps past midnight belongs to the day on which it begins: "fri 22:00–04:00" is open on Saturday
until 04:00. Kured tests the weekday at the instant and so opens Friday 00:00–04:00 and closes Saturday
00:00–04:00 (pkg/timewindow/timewindow.go), which nobody who writes such a window means. The end is part of the
window to its last second, as in kured."""

from __future__ import annotations

from datetime import datetime, timedelta

from careen.core.asked import request_of
from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Window
from careen.core.facts.reasons import Code
from careen.core.gates.hold import until_of
from careen.core.gates.question import ALWAYS, Cost, Foreseen, Gate, When, nothing
from careen.core.situation import Situation

_LONGEST_WINDOW = timedelta(days=8)  # days of the week repeat: what does not change in eight days never does
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def ask(situation: Situation, _when: When) -> Refusal | None:
    """`careen.dev/reboot-now` waives it until the instant it names."""
    window, now = situation.policy.window, situation.seen.now
    if is_open(window, now) or is_waived(situation.node, now):
        return None
    # Without the time of day: words that change with every look would be written with every look.
    return Refusal(
        gate=GATE.name, code=Code.OUTSIDE_WINDOW, sentence=f"outside the maintenance window {describe(window)}"
    )


def is_open(window: Window, now: datetime) -> bool:
    """Whether the instant lies in the window."""
    local = now.astimezone(window.zone)
    at = local.time().replace(microsecond=0)
    if window.start <= window.end:
        return window.start <= at <= window.end and local.weekday() in window.days
    if at >= window.start:
        return local.weekday() in window.days
    return at <= window.end and (local - timedelta(days=1)).weekday() in window.days


def change_after(window: Window, at: datetime, *, within: timedelta = _LONGEST_WINDOW) -> datetime | None:
    """When the window, open or shut at this instant, is first the other thing, to the second; None when it is
    not by then, or never is."""
    now, minute, last = is_open(window, at), at.replace(second=0, microsecond=0), at + within
    # Days, zones and summer time change on the minute; the window begins with its first second, and the one
    # after its last is outside.
    seconds = sorted({0, window.start.second, window.end.second + 1})
    while minute <= last:
        for instant in (minute + timedelta(seconds=second) for second in seconds):
            if at < instant <= last and is_open(window, instant) is not now:
                return instant
        minute += timedelta(minutes=1)
    return None


def opens_within(window: Window, now: datetime, seconds: float) -> float | None:
    """In how many seconds a window that is shut opens; None when not within `seconds`, or when it is open."""
    if is_open(window, now):
        return None
    opening = change_after(window, now, within=timedelta(seconds=seconds))
    return None if opening is None else (opening - now).total_seconds()


def is_waived(node: NodeView, now: datetime) -> bool:
    """Whether a person asked for the reboot now; without a readable `until` the wish counts for nothing."""
    until = until_of(node.annotations.get(keys.REBOOT_NOW, ""))
    request = request_of(node)
    return (until is not None and now < until) or (request is not None and request.is_now)


def describe(window: Window) -> str:
    """The window in words."""
    days = "every day" if len(window.days) == 7 else ",".join(_DAYS[day] for day in sorted(window.days)) or "never"
    return f"{days} {window.start:%H:%M}–{window.end:%H:%M} {window.zone}"


GATE = Gate(
    name="maintenance-window",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
    foresight=Foreseen.WITHOUT_FORECAST,
)
