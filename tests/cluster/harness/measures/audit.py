"""Counts the requests in an audit log: by verb, by resource, those about Events, and those with a response of status
429."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    total: int
    events: int  # of `total`: about Events, in either API group
    by_verb: dict[str, int]
    by_call: dict[str, int]  # "patch nodes", "create pods/eviction"
    too_many: int  # answered 429


def requests_of(events: Iterable[dict[str, Any]], user: str) -> Requests:
    """Count the requests of `user`, which is `system:serviceaccount:NAMESPACE:NAME`. A watch counts once, when it
    begins.
    """
    verbs: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    events_asked = too_many = 0
    for event in events:
        if event["user"]["username"] != user:
            continue
        # A watch is logged when it begins (ResponseStarted) and when it ends (ResponseComplete).
        if event["verb"] == "watch" and event["stage"] != "ResponseStarted":
            continue
        verbs[event["verb"]] += 1
        calls[f"{event['verb']} {_resource(event)}"] += 1
        events_asked += (event.get("objectRef") or {}).get("resource") == "events"
        too_many += event.get("responseStatus", {}).get("code") == 429
    return Requests(
        total=sum(verbs.values()),
        events=events_asked,
        by_verb=dict(verbs.most_common()),
        by_call=dict(calls.most_common()),
        too_many=too_many,
    )


def _resource(event: dict[str, Any]) -> str:
    """Return the resource of a request, such as `pods/eviction`, or the path of a request without a resource."""
    asked = event.get("objectRef")
    if asked is None:
        return str(event["requestURI"])
    return "/".join(part for part in (asked["resource"], asked.get("subresource")) if part)
