"""When the reboots under way should be over, by how long earlier ones took from cordon to release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, RequestKind
from careen.core.facts.phases import UNDER_CLAIM, Phase
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of, whole
from careen.core.people.requests import request_of
from careen.core.steps.shared.history import Reboot
from careen.rollout.model import Expected
from scheduler_core.sentences import count_of

_LONGEST_SECONDS = 86_400  # a report of more than a day is a mistake
_AFTERWARDS = frozenset({Phase.MAINTENANCE, Phase.VERIFYING, Phase.SETTLING})

# No estimate for a node that a person keeps down.
_ON_THE_WAY = UNDER_CLAIM - {Phase.CLAIMING, Phase.MAINTENANCE}


def last_lengths(nodes: Iterable[NodeView], history: Mapping[str, Sequence[Reboot]]) -> dict[str, int]:
    """The seconds from cordon to release of each node's last reboot, where they are recorded. One under way does not
    count, even if the node is back already; a missing time to settle is the median of the others'."""
    away, settling = dict[str, int](), dict[str, int]()
    for node in nodes:
        if not (reboots := history[node.name]):
            continue
        started = _started(node)
        last = next((each for each in reboots if each.seconds and (started is None or each.at < started)), None)
        if last is not None and last.seconds is not None:
            away[node.name] = last.seconds
            report = object_of(node.annotations.get(keys.LAST_REBOOT))
            settled = whole(report.get("settleSeconds"), _LONGEST_SECONDS)
            if settled is not None and from_rfc3339(report.get("at")) == last.at:
                settling[node.name] = settled
    usual = round(median(settling.values())) if settling else 0
    return {name: seconds + settling.get(name, usual) for name, seconds in away.items()}


def usual_seconds(lengths: Mapping[str, int]) -> int | None:
    """The median."""
    return round(median(lengths.values())) if lengths else None


def expected_ends(nodes: Sequence[NodeView], lengths: Mapping[str, int]) -> dict[str, Expected]:
    """When the reboot of each node that drains, reboots, verifies or settles should be over: after as long as its last
    one, or the median of the others' last ones (`last_lengths`). A drain for maintenance has no expected end."""
    usual = usual_seconds(lengths)
    found = {}
    for node in nodes:
        own, started = lengths.get(node.name), _started(node)
        seconds = usual if own is None else own
        if started is not None and seconds is not None:
            basis = "its last reboot" if own is not None else f"the last reboots of {count_of(len(lengths), 'node')}"
            found[node.name] = Expected(started=started, seconds=seconds, basis=basis)
    return found


def is_for_maintenance(node: NodeView, now: datetime | None = None) -> bool:
    """Whether the claim is for a person's work: the node goes to Maintenance or comes from there, and careen does not
    reboot it."""
    record = node.record
    if isinstance(record, Progress) and record.phase in _AFTERWARDS:
        # `steps/maintenance.py` removes the start of the drain, which every other claim keeps.
        return record.phase == Phase.MAINTENANCE or not (record.drain_started_at or record.announcement)
    request = request_of(node)
    is_over = request is not None and request.until is not None and now is not None and request.until <= now
    return request is not None and request.kind is not RequestKind.REBOOT and not is_over


def _started(node: NodeView) -> datetime | None:
    record = node.record
    if not isinstance(record, Progress) or record.phase not in _ON_THE_WAY:
        return None
    if record.phase == Phase.DRAINING and is_for_maintenance(node):
        return None
    return from_rfc3339(record.drain_started_at)
