"""Decides when to report a node whose reboot the gates (the checks before a reboot) have refused for too long.

The first report is due at a fixed time after the gates began to refuse, and a further report is due every week. Before
an agent sends a report, it posts an Event. The name of the Event depends on the refusal and on the number of the
report. If the API server already has an Event of this name, the agent does not send the report. So neither a restarted
process nor another agent sends the report again. An Event lives for one hour, so a report that is more than 45 minutes
late is not sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from careen.core.actions import Notify, Occasion
from careen.core.decision import Refusal, stored_refusals
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.people.templates import spoken
from scheduler_core.values import Value

# These hold a node back as planned (other nodes go first), or another message reports them (the roll-out has halted).
_EXPECTED = frozenset(
    {
        Code.OUTSIDE_WINDOW,
        Code.MINIMUM_INTERVAL,
        Code.CLUSTER_INTERVAL,
        Code.LIMIT_REACHED,
        Code.ZONE_AT_WORK,
        Code.SURPLUS,
        Code.HALTED,
    }
)

_AGAIN = timedelta(days=7)
# An Event lives for an hour; after that an agent cannot see whether another one sent the report.
_FRESH = timedelta(minutes=45)


class HeldBack(Value, kw_only=True):
    """A report that is due now: the gates have refused the node's reboot for too long."""

    message: Notify
    refusal: Refusal
    once: str  # equal for all processes that would send the same report
    is_cluster_wide: bool


def due(
    node: str, refusals: Iterable[Refusal], phase: Phase | None, now: datetime, *, after_seconds: float
) -> HeldBack | None:
    """Decides whether a report about the node's refused reboot must be sent now. Returns this report, or None if no
    report is due. If `after_seconds` is 0, no report is ever due."""
    oldest = _oldest(refusals)
    if oldest is None or not after_seconds or phase not in (Phase.WAITING, Phase.CLAIMING):
        return None
    since, first = _begun(oldest), timedelta(seconds=after_seconds)
    if now - since < first:
        return None
    number = (now - since - first) // _AGAIN
    if now - since - first - number * _AGAIN > _FRESH:
        return None
    lasted = (now - since).total_seconds()
    sentence = (
        f"Node {node} has been held back for {spoken(lasted)}, since {since:%Y-%m-%d %H:%M} UTC: {oldest.sentence}"
    )
    begun = "" if oldest.is_of_cluster else f"/{since:%Y-%m-%dT%H:%M}"
    return HeldBack(
        message=Notify(occasion=Occasion.BLOCKED, sentence=sentence, reason=oldest.sentence, seconds=lasted),
        refusal=oldest,
        once=f"{oldest.gate}/{oldest.code.value}{begun}/{number}",
        is_cluster_wide=oldest.is_of_cluster,
    )


def is_reported_by_another(found: HeldBack, waiting: Iterable[NodeView]) -> bool:
    """Whether the agent of another waiting node has sent this report within the last week. This is the case
    if the same gate refuses that node's reboot for the same cluster-wide reason, and began to refuse it much earlier.

    This check is needed because the report's Event prevents a second report for one hour only. The function ignores a
    node that is not ready, because its agent may be dead and its recorded refusals may be old.
    """
    ours = found.refusal
    return any(
        theirs.is_of_cluster
        and (theirs.gate, theirs.code) == (ours.gate, ours.code)
        and _FRESH < _begun(ours) - _begun(theirs) < _AGAIN
        for other in waiting
        if other.ready and (theirs := _oldest(stored_refusals(other))) is not None
    )


def _oldest(refusals: Iterable[Refusal]) -> Refusal | None:
    """Returns the refusal that has lasted longest, or None if there is none. Ignores refusals that are part of a normal
    roll-out, such as a closed maintenance window."""
    standing = [each for each in refusals if each.since is not None and each.code not in _EXPECTED]
    return min(standing, key=lambda each: (_begun(each), each.gate), default=None)


def _begun(refusal: Refusal) -> datetime:
    return refusal.since or datetime.max.replace(tzinfo=UTC)
