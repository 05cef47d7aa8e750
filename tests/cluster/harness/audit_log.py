"""Reads the audit log of a real API server (audit.k8s.io/v1, level RequestResponse) as entries of the journal.

The log has no object before a write, so the reader remembers each object. It also lacks what a server does on its own:
an accepted eviction marks the pod as terminating, a binding sets the pod's node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from drydock.checker.journal import AGENT_PREFIX, AgentEvent, Entry, Object, Write

AUDIT_RULES: tuple[Mapping[str, Any], ...] = (
    {
        "level": "RequestResponse",
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        "resources": [
            {"group": "", "resources": ["nodes", "nodes/status", "pods", "pods/status", "pods/binding"]},
            {"group": "", "resources": ["pods/eviction"]},
            {"group": "apps", "resources": ["daemonsets"]},
        ],
        "omitManagedFields": True,
    },
    {
        "level": "Request",
        "verbs": ["create"],
        "userGroups": ["system:serviceaccounts"],
        "resources": [{"group": "", "resources": ["events"]}, {"group": "events.k8s.io", "resources": ["events"]}],
    },
)
"""The rules of an audit policy that logs what the reader needs."""

_NODE_OF_TOKEN = "authentication.kubernetes.io/node-name"
_KINDS = {"Node", "Pod", "DaemonSet"}
Key = tuple[str, str]
Event = Mapping[str, Any]


class AuditReader:
    """`user` is the agents' ServiceAccount; the token of each agent names its node."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._known: dict[tuple[str, Key], Object] = {}

    def remember(self, plural: str, item: Object) -> None:
        """An object from before the log began."""
        self._known[plural, _key_of(item)] = item

    def entries(self, events: Iterable[Event]) -> Iterator[Entry]:
        """An entry's time is when its request arrived, but not before the entry before it."""
        at = 0.0
        for event in _in_order(event for event in events if _has_effect(event)):
            at = max(at, datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp())
            actor = self._actor(event)
            if event["objectRef"]["resource"] != "events":
                for verb, plural, key, after in self._changes(event):
                    before = self._known.pop((plural, key), {})
                    if after:
                        self._known[plural, key] = after
                    elif not before:  # the log may begin after the object's creation
                        before = {"metadata": {"namespace": key[0], "name": key[1]}}
                    yield Write(at=at, actor=actor, verb=verb, plural=plural, key=key, before=before, after=after)
            elif actor.startswith(AGENT_PREFIX):
                reason = str((event.get("requestObject") or {}).get("reason", ""))
                yield AgentEvent(at=at, node=actor.removeprefix(AGENT_PREFIX), what="sent", reason=reason)

    def _actor(self, event: Event) -> str:
        user = event.get("impersonatedUser") or event["user"]
        node = (user.get("extra") or {}).get(_NODE_OF_TOKEN, [""])[0]
        return f"{AGENT_PREFIX}{node}" if node and user["username"] == self._user else str(user["username"])

    def _changes(self, event: Event) -> Iterator[tuple[str, str, Key, Object]]:
        verb, plural, answer = event["verb"], event["objectRef"]["resource"], _answer(event)
        if verb == "deletecollection":
            for item in answer.get("items") or ():
                yield "delete", plural, _key_of(item), {}
            return
        key = _key_in(event)
        before = self._known.get((plural, key), {})
        # The log may begin after the object's creation.
        metadata = before.get("metadata") or {"namespace": key[0], "name": key[1]}
        match event["objectRef"].get("subresource", ""):
            case "eviction":
                ends = {**metadata, "deletionTimestamp": event["stageTimestamp"]}
                yield "evict", plural, key, {**before, "metadata": ends}
            case "binding":
                spec = {**(before.get("spec") or {}), "nodeName": event["requestObject"]["target"]["name"]}
                yield "bind", plural, key, {**before, "metadata": metadata, "spec": spec}
            case _:
                yield verb, plural, key, {} if _is_gone(event) else _after(answer, before)


def _after(answer: Object, before: Object) -> Object:
    if answer.get("kind") in _KINDS:
        return answer
    # A client may ask for the metadata alone.
    is_partial = answer.get("kind") == "PartialObjectMetadata"
    return {**before, "metadata": answer["metadata"]} if is_partial else before


def _is_gone(event: Event) -> bool:
    """Whether the object no longer exists: deleted at once, or by the request that took its last finalizer."""
    answer = _answer(event)
    metadata = answer.get("metadata") or {}
    if event["verb"] == "delete" and answer.get("kind") == "Status":
        return True
    options = event.get("requestObject") or {} if event["verb"] == "delete" else {}
    grace = options.get("gracePeriodSeconds", metadata.get("deletionGracePeriodSeconds") or 0)
    is_at_once = grace == 0 or "gracePeriodSeconds=0" in event["requestURI"]
    is_deleted = event["verb"] == "delete" or bool(metadata.get("deletionTimestamp"))
    return is_deleted and is_at_once and not metadata.get("finalizers")


def _has_effect(event: Event) -> bool:
    asked, body = event.get("objectRef") or {}, event.get("requestObject") or {}
    is_dry = "dryRun=" in event["requestURI"] or body.get("dryRun") or (body.get("deleteOptions") or {}).get("dryRun")
    return (
        event["stage"] == "ResponseComplete"
        and event["verb"] in ("create", "update", "patch", "delete", "deletecollection")
        and asked.get("resource") in ("nodes", "pods", "daemonsets", "events")
        and asked.get("subresource", "") in ("", "status", "eviction", "binding")
        and 200 <= event.get("responseStatus", {}).get("code", 0) < 300
        and not is_dry
    )


def _in_order(events: Iterable[Event]) -> list[Event]:
    """As logged, except that the writes of one object are in the order of their versions: two answers may be logged the
    other way round."""
    logged = sorted(events, key=lambda event: str(event["stageTimestamp"]))
    places: dict[tuple[str, Key], list[int]] = {}
    for index, event in enumerate(logged):
        if _version(event):
            places.setdefault((event["objectRef"]["resource"], _key_in(event)), []).append(index)
    found = list(logged)
    for indices in places.values():
        for index, event in zip(indices, sorted((logged[i] for i in indices), key=_version), strict=True):
            found[index] = event
    return found


def _version(event: Event) -> int:
    """0 where the answer does not say at which version the write took place: a deletion answers with an older one."""
    version = str((_answer(event).get("metadata") or {}).get("resourceVersion", ""))
    return int(version) if version.isdigit() and not event["verb"].startswith("delete") else 0


def _answer(event: Event) -> Object:
    return event.get("responseObject") or {}


def _key_in(event: Event) -> Key:
    asked = event["objectRef"]
    return asked.get("namespace", ""), asked.get("name") or _key_of(_answer(event))[1]


def _key_of(item: Object) -> Key:
    metadata = item.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")
