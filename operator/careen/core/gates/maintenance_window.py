"""This gate refuses to let the node begin its drain or its reboot outside the maintenance windows of the node. kured's
flags for days, start, end and time zone define one window; --windows defines several.

`core/windows/` computes when a window is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.hold import until_of
from careen.core.gates.question import ALWAYS, Cost, Gate, When, nothing
from careen.core.people.asked import Standing, request_of, standing
from careen.core.situation import Situation
from careen.core.windows.openings import is_open, windows_of
from careen.core.windows.values import Cron, Dates, NamedWindow, Window
from scheduler_core.sentences import first_few

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MOST_TOLD = 3


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal outside of the maintenance windows. With the annotation `careen.dev/reboot-now` the node needs
    no open window until the instant in that annotation."""
    windows, now = windows_of(situation.policy, _own_labels(situation)), situation.seen.now
    if is_open(windows, now) or is_waived(situation.node, now):
        return None
    if not windows:
        return Refusal(
            gate=GATE.name,
            code=Code.NO_WINDOW,
            sentence="no window of --windows selects this node, and --reboot-days, --start-time and --end-time "
            "set no window",
        )
    # The sentence has no time of day: the agent would patch the Node with each change.
    return Refusal(gate=GATE.name, code=Code.OUTSIDE_WINDOW, sentence=_are_closed(windows))


def _own_labels(situation: Situation) -> dict[str, str]:
    """Return the labels that the node had before --pre-reboot-node-labels changed them. With the changed labels, the
    node could have another maintenance window during its drain than before."""
    labels = {**situation.node.labels, **situation.progress.prior_labels}
    return {key: value for key, value in labels.items() if value is not None}


def is_waived(node: NodeView, now: datetime) -> bool:
    """Whether a person asked for the node's reboot now, even outside of maintenance windows. An annotation
    `careen.dev/reboot-now` without a readable `until` is ignored."""
    until = until_of(node.annotations.get(keys.REBOOT_NOW, ""))
    request = request_of(node)
    if until is not None and now < until:
        return True
    # The boot id on the Node shows whether the requested reboot has happened. A request that is met or expired no
    # longer waives the windows.
    return request is not None and request.is_now and standing(request, now=now, boot=node.boot_id) is Standing.STANDS


def _are_closed(windows: Sequence[NamedWindow]) -> str:
    described = first_few([describe(each) for each in windows], _MOST_TOLD, separator="; ")
    if len(windows) == 1:
        return f"the maintenance window is closed: {described}"
    return f"the maintenance windows are closed: {described}"


def describe(window: NamedWindow) -> str:
    """Return a description of a maintenance window in words."""
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


GATE = Gate(
    name="maintenance-window",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
)
