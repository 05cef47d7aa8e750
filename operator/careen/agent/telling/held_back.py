"""When to report a node that has been refused for too long: a fixed time after the refusal began, then every week.

Before the report the agent posts an Event, named by the refusal and the report's number. If the API server already has
it, the report is not sent: no restarted process and no other agent repeats it. An Event lives for one hour, so a report
that is more than 45 minutes late is not sent.
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
    """A report that is due now."""

    message: Notify
    refusal: Refusal
    once: str  # equal for all processes that would send the same report
    is_cluster_wide: bool


def due(
    node: str, refusals: Iterable[Refusal], phase: Phase | None, now: datetime, *, after_seconds: float
) -> HeldBack | None:
    """The report that is due now, if any. With `after_seconds` 0 there never is one."""
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
    """Whether another waiting node's agent has sent this report within the last week: the same gate refuses that node
    for the same cluster-wide reason, and began much earlier.

    Needed because the report's Event prevents a second report for one hour only. A node that is not ready does not
    count: its agent may be dead and its recorded refusals old.
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
    """The refusal that has lasted longest, without those of a normal roll-out, such as a closed maintenance window."""
    standing = [each for each in refusals if each.since is not None and each.code not in _EXPECTED]
    return min(standing, key=lambda each: (_begun(each), each.gate), default=None)


def _begun(refusal: Refusal) -> datetime:
    return refusal.since or datetime.max.replace(tzinfo=UTC)
