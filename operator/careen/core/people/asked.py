"""Reads a person's request for one node: a reboot, a drain, or maintenance by hand.

The annotation `careen.dev/request` stays on the Node until the request is met, withdrawn or expired. The agent treats
the request as if the host asked for a reboot: the same gates, lock and record lead to the drain. A request for a reboot
is met when the host runs another boot than at the time of the request. A request to keep a node down needs no new boot.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from careen.core.facts import keys
from careen.core.facts.observation import Need, NeedAnswer, NodeView, PersonRequest, Unknown, Wish
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, is_same_boot
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import object_of, short
from careen.core.observation import Observation
from careen.core.situation import Situation

# In the other phases under a claim a reboot is under way or done, and only the host says whether another one is needed.
# A request for a reboot also counts in Rebooting, because the reboot under way is the one that meets it.
_ASKED_IN = frozenset({"", Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING, Phase.MAINTENANCE, Phase.FAILED})


class Standing(StrEnum):
    """The state of a person's request for a node: still valid, met or expired."""

    STANDS = "stands"
    MET = "met"  # the requested reboot has happened
    OVER = "over"  # its `until` has passed


def request_of(node: NodeView) -> PersonRequest | None:
    """Return the request in the Node's annotation `careen.dev/request`. Return None if the Node has no such annotation
    or the annotation cannot be understood. A person who uses kubectl may write just one word, such as `reboot`."""
    text = node.annotations.get(keys.REQUEST, "").strip()
    found = object_of(text) or {"want": text}
    wish = found.get("want")
    if not isinstance(wish, str) or wish not in set(Wish):
        return None
    return PersonRequest(
        wish=Wish(wish),
        reason=short(str(found.get("reason") or "")),
        at=from_rfc3339(found.get("at")),
        until=from_rfc3339(found.get("until")),
        boot=short(str(found.get("boot") or "")),
        is_now=found.get("now") is True,
    )


def to_annotation(request: PersonRequest) -> str:
    """Return the request as short JSON, such as `{"want":"reboot","now":true}`, for the annotation that `request_of`
    reads."""
    record = {
        "want": request.wish.value,
        "reason": request.reason,
        "at": rfc3339(request.at) if request.at else "",
        "until": rfc3339(request.until) if request.until else "",
        "boot": request.boot,
        "now": request.is_now,
    }
    return json.dumps({key: value for key, value in record.items() if value}, separators=(",", ":"))


def standing(request: PersonRequest, *, now: datetime, boot: str) -> Standing:
    """Return the state of the request at this instant: valid, met or expired. `boot` is the id of the host's present
    boot, empty if unknown."""
    if request.until is not None and request.until <= now:
        return Standing.OVER
    if request.wish is Wish.REBOOT and request.boot and boot and not is_same_boot(request.boot, boot):
        return Standing.MET
    return Standing.STANDS


def heard(seen: Observation, node: NodeView, progress: Progress) -> Observation:
    """Return the observation in which a person's valid request replaces what the host says about its need of a reboot.
    Return the observation unchanged if there is no valid request, if the request does not apply in the node's phase, or
    if the node failed because of a reboot loop."""
    request = request_of(node)
    boot = "" if isinstance(seen.boot_id, Unknown) else seen.boot_id
    if request is None or not _is_asked_in(progress.phase, request) or progress.failed == Code.REBOOT_LOOP:
        return seen
    if standing(request, now=seen.now, boot=boot) is not Standing.STANDS:
        return seen
    need = Need(
        answer=NeedAnswer.YES,
        detail=sentence(request),
        package_manager=seen.need.package_manager,
        request=request,
    )
    return replace(seen, need=need)


def _is_asked_in(phase: str, request: PersonRequest) -> bool:
    return phase in _ASKED_IN or (phase == Phase.REBOOTING and request.wish is Wish.REBOOT)


def sentence(request: PersonRequest) -> str:
    """Return a sentence about the request, such as `a person asked for maintenance: disk swap`."""
    wish = {Wish.REBOOT: "a reboot", Wish.DRAIN: "a drain", Wish.MAINTENANCE: "maintenance"}[request.wish]
    return f"a person asked for {wish}: {request.reason}" if request.reason else f"a person asked for {wish}"


def kept(situation: Situation) -> PersonRequest | None:
    """Return the person's request that keeps this node down after its drain. Return None if a reboot follows the
    drain."""
    request = situation.seen.need.request
    return request if request is not None and request.wish is not Wish.REBOOT else None


def done_with(situation: Situation) -> dict[str, str | None]:
    """Return the change of annotations that removes a person's request that is met, expired or unreadable. Return no
    change if the Node has no request or a valid request."""
    if keys.REQUEST not in situation.node.annotations:
        return {}
    request = request_of(situation.node)
    is_standing = request is not None and (
        standing(request, now=situation.seen.now, boot=situation.boot) is Standing.STANDS
    )
    return {} if is_standing else {keys.REQUEST: None}


def met_by_this_boot(situation: Situation) -> dict[str, str | None]:
    """Return the change of annotations that removes a person's request for a reboot when the host runs a new boot,
    because that boot meets the request. Return no change if there is no request for a reboot."""
    request = request_of(situation.node)
    return {keys.REQUEST: None} if request is not None and request.wish is Wish.REBOOT else {}
