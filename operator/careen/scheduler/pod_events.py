"""Events about pods: the first is created, repeated ones become its series. Pure.

Source: the Event broadcaster of client-go (tools/events/event_broadcaster.go, v0.36).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from datetime import datetime
from typing import Final

import msgspec

from careen.scheduler.wire.lanes import HttpCall
from scheduler_core.queue.failed_cycle import event_note
from scheduler_core.running.commands import PostPodEvent
from scheduler_core.values import Value

SERIES_SECONDS: Final = 360.0
"""An equal Event so long after the last one is a new Event."""
_MOST_KEPT: Final = 10_000
_ENCODER: Final = msgspec.json.Encoder()
_NAME: Final = re.compile(r"[^a-z0-9.-]")


class _Posted(Value, kw_only=True):
    name: str
    namespace: str
    count: int
    last: float


class PodEvents:
    """What was posted lately."""

    def __init__(self, instance: str) -> None:
        """`instance`: which of several schedulers this is, such as the name of its pod."""
        self._instance = instance
        self._posted: OrderedDict[tuple[object, ...], _Posted] = OrderedDict()
        self._number = 0

    def call(self, event: PostPodEvent, now: float, at: datetime) -> HttpCall:
        """`now`: seconds of a clock that never jumps."""
        key = (event.uid, event.profile, event.reason, event.action, event.note)
        before = self._posted.pop(key, None)
        if before is not None and now - before.last < SERIES_SECONDS:
            self._posted[key] = posted = _Posted(
                name=before.name, namespace=before.namespace, count=before.count + 1, last=now
            )
            return HttpCall(
                method="PATCH",
                path=f"{_events(posted.namespace)}/{posted.name}",
                body=_ENCODER.encode({"series": {"count": posted.count, "lastObservedTime": _micro(at)}}),
                content_type="application/strategic-merge-patch+json",
            )
        namespace, _, pod = event.pod.partition("/")
        self._number += 1
        name = f"{_NAME.sub('-', pod)}.{int(at.timestamp() * 1e6):x}{self._number:x}"
        self._posted[key] = _Posted(name=name, namespace=namespace, count=1, last=now)
        while len(self._posted) > _MOST_KEPT:
            self._posted.popitem(last=False)
        return HttpCall(method="POST", path=_events(namespace), body=_ENCODER.encode(self._body(event, name, at)))

    def _body(self, event: PostPodEvent, name: str, at: datetime) -> object:
        namespace, _, pod = event.pod.partition("/")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _micro(at),
            "reportingController": event.profile,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "type": "Warning" if event.is_warning else "Normal",
            "note": event_note(event.note),
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod, "uid": event.uid},
        }


def _events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def _micro(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
