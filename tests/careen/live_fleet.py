"""Fleets in the middle of a roll-out, for tests of the live page."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from careen.core.facts import keys
from careen.core.facts.times import rfc3339
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.notation import render

ZONES = ("eu-1a", "eu-1b", "eu-1c")


def a_node(name: str, zone: str, annotations: dict[str, str], label: str = "") -> dict[str, Any]:
    labels = {keys.ZONE: zone, **({keys.REBOOT_LABEL: label} if label else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": f"boot-{name}", "kernelVersion": "6.1.0-29-amd64"},
        },
    }


def roll_out(number: int, now: datetime, *, blocked: int = 0) -> list[dict[str, Any]]:
    """This many Nodes in three zones, of which 40 % have rebooted and two are at work, and the DaemonSet with the lock.
    A budget holds `blocked` of the waiting nodes."""
    done, at_work = number * 2 // 5, 2
    objects = []
    for place in range(number):
        name, zone = f"node-{place:04}", ZONES[place % 3]
        annotations: dict[str, str] = {}
        label = ""
        if place < done:
            at = now - timedelta(seconds=300 * (done - place) // at_work)
            report = {"at": rfc3339(at), "seconds": 280, "moves": 12, "boot": f"boot-{name}"}
            row = {
                **report,
                "why": "linux-image-6.1.0-29 needs a reboot",
                "forecast": 12,
                "needSince": rfc3339(now - timedelta(days=2)),
                "kernelLeft": "6.1.0-28-amd64",
                "kernel": "6.1.0-29-amd64",
                "refused": {"outside-window": 72000},
            }
            annotations = {keys.LAST_REBOOT: json.dumps(report), keys.HISTORY: json.dumps([row])}
        elif place < done + at_work:
            label = "in-progress"
            record = {
                "version": 1,
                "phase": "Draining",
                "claim": f"c{place}",
                "boot_left": f"boot-{name}",
                "need_since": rfc3339(now - timedelta(days=2)),
                "drain_started_at": rfc3339(now - timedelta(seconds=70)),
            }
            annotations = {
                keys.PHASE: "Draining",
                keys.SINCE: rfc3339(now - timedelta(seconds=70)),
                keys.REASON: "evicting 3 of 12 pods",
                keys.PROGRESS: json.dumps(record),
                keys.FORECAST: json.dumps(
                    {"at": rfc3339(now), "counts": {"moves": 1}, "pods": {"shop/web-1": ["node-0001", "node-0004"]}}
                ),
            }
        else:
            label = "ready"
            record = {"version": 1, "phase": "Waiting", "need_since": rfc3339(now - timedelta(days=2))}
            annotations = {
                keys.PHASE: "Waiting",
                keys.SINCE: rfc3339(now - timedelta(days=2)),
                keys.REASON: "other nodes go first",
                keys.PROGRESS: json.dumps(record),
            }
            if place >= number - blocked:
                refusal = {
                    "gate": "blocking-pods",
                    "code": "blocking-pod",
                    "sentence": "the pod shop/db-0 forbids the reboot",
                    "since": rfc3339(now - timedelta(hours=5)),
                }
                annotations[keys.REFUSALS] = json.dumps([refusal])
                label = "required"
        objects.append(a_node(name, zone, annotations, label))
    claims = tuple(
        Entry(node=f"node-{place:04}", id=f"c{place}", created=rfc3339(now - timedelta(seconds=72)))
        for place in range(done, done + at_work)
    )
    return [*objects, a_daemonset(LockContent(entries=claims, max_owners=at_work))]


def a_daemonset(lock: LockContent) -> dict[str, Any]:
    labels = {"name": "careen"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "args": ["agent"]}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "careen",
            "namespace": "careen",
            "annotations": {keys.LOCK_ANNOTATION: render(lock)},
        },
        "spec": {"selector": {"matchLabels": labels}, "template": template},
        "status": {"desiredNumberScheduled": 3},
    }
