"""A person's request for one node: a reboot, a drain, or maintenance by hand.

The annotation `careen.dev/request` stays on the Node until the request is met, withdrawn or expired. The agent treats
it as a need. A request for a reboot is met by another boot than at the time of the request; a request to keep a node
down needs no new boot.
"""

from __future__ import annotations

import json
from datetime import datetime
from enum import StrEnum

from careen.core.facts import keys
from careen.core.facts.observation import Gone, Need, NeedAnswer, NodeView, PersonRequest, RequestKind, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, is_same_boot
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import object_of, short
from careen.core.observation import Observation
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace

# In the other phases under a claim a reboot is under way or done, and only the host says whether another one is needed.
# A request for a reboot also counts in Rebooting, because the reboot under way is the one that meets it.
_ASKED_IN = frozenset({"", Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING, Phase.MAINTENANCE, Phase.FAILED})


_LONGEST_SHOWN = 100
_OF_PERSON = "a person asked for "


class RequestState(StrEnum):
    """What has become of a person's request."""

    PENDING = "pending"
    MET = "met"  # the requested reboot has happened
    EXPIRED = "expired"  # its `until` has passed


def request_of(node: NodeView) -> PersonRequest | None:
    """The request on the Node; None if there is none or it cannot be understood. With kubectl, a person may write just
    one word, such as `reboot`."""
    if keys.REQUEST not in node.annotations:
        return None
    text = node.annotations[keys.REQUEST].strip()
    found = object_of(text) or {"want": text}
    kind = found.get("want")
    if not isinstance(kind, str) or kind not in set(RequestKind):
        return None
    return PersonRequest(
        kind=RequestKind(kind),
        reason=short(str(found.get("reason") or "")),
        at=from_rfc3339(found.get("at")),
        until=from_rfc3339(found.get("until")),
        boot=short(str(found.get("boot") or "")),
        is_now=found.get("now") is True,
    )


def to_annotation(request: PersonRequest) -> str:
    """The request as short JSON, such as `{"want":"reboot","now":true}`."""
    record = {
        "want": request.kind.value,
        "reason": request.reason,
        "at": rfc3339(request.at) if request.at else "",
        "until": rfc3339(request.until) if request.until else "",
        "boot": request.boot,
        "now": request.is_now,
    }
    return json.dumps({key: value for key, value in record.items() if value}, separators=(",", ":"))


def not_understood(node: NodeView) -> str:
    """A sentence about a request that cannot be understood; "" without one."""
    if keys.REQUEST not in node.annotations or request_of(node) is not None:
        return ""
    text = short(node.annotations[keys.REQUEST].strip(), _LONGEST_SHOWN) or "an empty text"
    return (
        f"the annotation {keys.REQUEST}: the agent does not understand {text}; it understands {', '.join(RequestKind)}"
    )


def asks_for_recheck(node: NodeView | Gone | Unknown) -> bool:
    """Whether a person wants the agent to look at once (`careen recheck`)."""
    return isinstance(node, NodeView) and keys.RECHECK in node.annotations


def state_of(request: PersonRequest, *, now: datetime, boot: str) -> RequestState:
    """What has become of the request; `boot` is the host's present boot, empty if unknown."""
    if request.until is not None and request.until <= now:
        return RequestState.EXPIRED
    if request.kind is RequestKind.REBOOT and request.boot and boot and not is_same_boot(request.boot, boot):
        return RequestState.MET
    return RequestState.PENDING


def as_need(seen: Observation, node: NodeView, progress: Progress) -> Observation:
    """The observation in which a pending request replaces what the host says about its need. Unchanged if the request
    does not apply in the node's phase, or after a failure because of a reboot loop."""
    request = request_of(node)
    boot = "" if isinstance(seen.boot_id, Unknown) else seen.boot_id
    if request is None or not _is_asked_in(progress.phase, request) or progress.failed == Code.REBOOT_LOOP:
        return seen
    if state_of(request, now=seen.now, boot=boot) is not RequestState.PENDING:
        return seen
    need = Need(
        answer=NeedAnswer.YES,
        detail=sentence(request),
        package_manager=seen.need.package_manager,
        request=request,
    )
    return replace(seen, need=need)


def _is_asked_in(phase: str, request: PersonRequest) -> bool:
    return phase in _ASKED_IN or (phase == Phase.REBOOTING and request.kind is RequestKind.REBOOT)


def sentence(request: PersonRequest) -> str:
    """A clause such as `a person asked for maintenance: disk swap`."""
    what = {
        RequestKind.REBOOT: "a reboot",
        RequestKind.DRAIN: "a drain",
        RequestKind.MAINTENANCE: "maintenance",
    }[request.kind]
    return f"{_OF_PERSON}{what}: {request.reason}" if request.reason else f"{_OF_PERSON}{what}"


def why_gone(situation: Situation) -> str:
    """Why nothing needs this node's claim any more: what the Node says that it was for is withdrawn or over."""
    is_of_person = situation.node.annotations.get(keys.NEED, "").startswith(_OF_PERSON)
    return "the person's request is withdrawn or over" if is_of_person else "the host no longer asks for a reboot"


def to_keep_down(situation: Situation) -> PersonRequest | None:
    """The request that keeps this node down after its drain; None if a reboot follows the drain."""
    request = situation.seen.need.request
    return request if request is not None and request.kind is not RequestKind.REBOOT else None


def removal(situation: Situation) -> dict[str, str | None]:
    """The change of annotations that removes a request which is met, expired or unreadable."""
    if keys.REQUEST not in situation.node.annotations:
        return {}
    request = request_of(situation.node)
    is_pending = request is not None and (
        state_of(request, now=situation.seen.now, boot=situation.boot) is RequestState.PENDING
    )
    return {} if is_pending else {keys.REQUEST: None}


def met_by_this_boot(situation: Situation) -> dict[str, str | None]:
    """The change of annotations that removes a request for a reboot, once the host runs a new boot."""
    request = request_of(situation.node)
    return {keys.REQUEST: None} if request is not None and request.kind is RequestKind.REBOOT else {}
