"""Refuses outside the maintenance windows of the node: the one that kured's flags for days, start, end and time zone
define, and those of --windows. `core/windows/` computes when a window is open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.core.gates.hold import until_of
from careen.core.gates.question import Cost, No, gate
from careen.core.people.requests import RequestState, request_of, state_of
from careen.core.situation import Situation
from careen.core.windows.openings import is_open, windows_of
from scheduler_core.sentences import first_few

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MOST_TOLD = 3


@gate("maintenance-window", cost=Cost.CHEAP)
def maintenance_window(situation: Situation) -> No | None:
    windows, now = windows_of(situation.policy, _own_labels(situation)), situation.seen.now
    if is_open(windows, now) or is_waived(situation.node, now):
        return None
    if not windows:
        return No(
            Code.NO_WINDOW,
            "no window of --windows selects this node, and --reboot-days, --start-time and --end-time set no window",
        )
    # The sentence has no time of day: the agent would patch the Node with each change.
    return No(Code.OUTSIDE_WINDOW, _are_closed(windows))


def _own_labels(situation: Situation) -> dict[str, str]:
    """The labels that the node had before --pre-reboot-node-labels changed them: its window must not change with
    them."""
    labels = {**situation.node.labels, **situation.progress.prior_labels}
    return {key: value for key, value in labels.items() if value is not None}


def is_waived(node: NodeView, now: datetime) -> bool:
    """Whether a person asked for the node's reboot now, even outside its windows. An annotation careen.dev/reboot-now
    without a readable `until` is ignored."""
    until = until_of(node.annotations.get(keys.REBOOT_NOW, ""))
    request = request_of(node)
    if until is not None and now < until:
        return True
    # The boot id on the Node shows whether the requested reboot has happened. A request that is met or expired no
    # longer waives the windows.
    return (
        request is not None and request.is_now and state_of(request, now=now, boot=node.boot_id) is RequestState.PENDING
    )


def _are_closed(windows: Sequence[NamedWindow]) -> str:
    described = first_few([describe(each) for each in windows], _MOST_TOLD, separator="; ")
    if len(windows) == 1:
        return f"the maintenance window is closed: {described}"
    return f"the maintenance windows are closed: {described}"


def describe(window: NamedWindow) -> str:
    """The window in words."""
    opens = _cron(window.opens) if isinstance(window.opens, Cron) else _daily(window.opens)
    named = f"{window.name} ({opens})" if window.name else opens
    if not window.excluded:
        return named
    excluded_dates = first_few([_dates(each) for each in window.excluded], _MOST_TOLD)
    return f"{named} except on {excluded_dates}"


def _daily(window: Window) -> str:
    days = "every day" if len(window.days) == 7 else ",".join(_DAYS[day] for day in sorted(window.days)) or "never"
    return f"{days} {window.start:%H:%M}–{window.end:%H:%M} {window.zone}"


def _cron(window: Cron) -> str:
    return f"cron {window.expression} for {span(window.seconds)} {window.zone}"


def _dates(dates: Dates) -> str:
    return f"{dates.first}" if dates.first == dates.last else f"{dates.first}..{dates.last}"
