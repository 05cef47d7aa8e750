"""Posts Events about the agent's Node, ConfigMap and DaemonSet. `careen.core` writes the texts. A post that fails does
not delay the agent's work."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from careen.cluster import objects
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, Conflict, Forbidden, NotSent, TooManyRequests
from careen.core.facts.times import rfc3339
from careen.core.plain_text import one_line
from scheduler_core.values import Value

# `kubectl describe node` looks here for a Node's Events, by its UID; Nodes have no namespace of their own.
NODE_EVENTS_NAMESPACE = "default"
COMPONENT = "careen"
_LONGEST_NOTE = 1_000  # bytes; the server refuses more than 1,024


class Subject(Value, kw_only=True):
    """What an Event is about."""

    kind: str
    name: str
    uid: str
    namespace: str = ""
    api_version: str = "v1"


async def post_event(
    api: ClusterApi,
    subject: Subject,
    *,
    reason: str,
    sentence: str,
    is_warning: bool,
    host: str,
    once: str = "",
    pauses: Sequence[float] = (),
) -> str:
    """Posts an Event. Returns why that failed, or "".

    `once` gives it a name made of `subject`, `reason` and `once`, of which the server keeps only the first. Without an
    answer it is posted again after each of `pauses` (seconds); its name prevents duplicates.
    """
    at = api.clock.now()
    once = once or (f"{host}/{at.isoformat()}/{sentence}" if pauses else "")
    namespace = subject.namespace or NODE_EVENTS_NAMESPACE
    body = event(
        subject,
        reason=reason,
        sentence=sentence,
        is_warning=is_warning,
        host=host,
        at=rfc3339(at),
        once=once,
    )
    for pause in (*pauses, None):
        try:
            await api.post(f"/api/v1/namespaces/{namespace}/events", body, objects.ObjectHead)
        except Conflict as error:
            return "" if once else str(error)
        except ClusterError as error:
            if pause is None or not _may_pass(error):
                return str(error)
            await api.clock.sleep(pause)
        else:
            return ""
    raise AssertionError("this line is unreachable: the last attempt returns or raises an error")


async def is_first(api: ClusterApi, subject: Subject, *, reason: str, sentence: str, host: str, once: str) -> bool:
    """Posts this warning. Returns whether it is the first Event with its name, so that one of many agents sends people
    a message; True if the server does not answer: two messages are better than none."""
    at = rfc3339(api.clock.now())
    body = event(subject, reason=reason, sentence=sentence, is_warning=True, host=host, at=at, once=once)
    try:
        await api.post(
            f"/api/v1/namespaces/{subject.namespace or NODE_EVENTS_NAMESPACE}/events", body, objects.ObjectHead
        )
    except Conflict:
        return False
    except Forbidden:
        # under kured's roles no agent has the right, and all waiting agents would send the same message
        return subject.kind == "Node"
    except ClusterError:
        return True
    return True


def _may_pass(error: ClusterError) -> bool:
    return error.may_have_landed or isinstance(error, NotSent | TooManyRequests)


def event(
    subject: Subject, *, reason: str, sentence: str, is_warning: bool, host: str, at: str, once: str = ""
) -> dict[str, Any]:
    """The core/v1 Event to post."""
    involved = {"kind": subject.kind, "name": subject.name, "uid": subject.uid, "apiVersion": subject.api_version}
    if subject.namespace:
        involved["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**_name(subject, reason, once), "namespace": subject.namespace or NODE_EVENTS_NAMESPACE},
        "involvedObject": involved,
        "type": "Warning" if is_warning else "Normal",
        "reason": reason,
        "message": one_line(sentence).encode()[:_LONGEST_NOTE].decode(errors="ignore"),
        "source": {"component": COMPONENT, "host": host},
        "reportingComponent": COMPONENT,
        "reportingInstance": host,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _name(subject: Subject, reason: str, once: str) -> dict[str, str]:
    """The same subject, reason and `once` give the same name, even for two agents, so the server keeps only the first
    Event. Without `once` the server generates the name."""
    if not once:
        return {"generateName": f"{subject.name}."}
    return {"name": f"{subject.name}.{hashlib.sha256(f'{subject.uid}/{reason}/{once}'.encode()).hexdigest()[:16]}"}
