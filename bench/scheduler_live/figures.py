"""What the API server's audit log says about one run: latencies, bindings a second, requests by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler_core.values import Value

POLICY: Mapping[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": ["scheduler"]},
        {
            "level": "Metadata",
            "users": ["admin"],
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods"]}],
        },
        {"level": "None"},
    ],
}


class LiveFigures(Value, kw_only=True):
    """`latencies`: sorted, in seconds, from the answer to a pod's creation to the answer to its binding. `calls`: the
    scheduler's requests, such as `create pods/binding`. `first_bound_at`: in seconds since the epoch; 0 if none was."""

    bound: int
    latencies: tuple[float, ...]
    bindings_per_second: float
    calls: Mapping[str, int]
    first_bound_at: float = 0.0

    def latency_ms(self, part: float) -> float:
        """Below this are `part` of the pods."""
        return self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * part))] * 1000


def figures(events: Sequence[Mapping[str, Any]], prefix: str) -> LiveFigures:
    """Of the pods whose names begin with `prefix`."""
    made: dict[str, float] = {}
    bound: dict[str, float] = {}
    calls: Counter[str] = Counter()
    for event in events:
        about = event.get("objectRef") or {}
        code = event.get("responseStatus", {}).get("code", 0)
        what = "/".join(filter(None, (about.get("resource", "?"), about.get("subresource"))))
        if event["user"]["username"] == "scheduler":
            calls[f"{event['verb']} {what}" + (f" {code}" if code >= 300 else "")] += 1
        if event["verb"] == "create" and code < 300 and about.get("name", "").startswith(f"{prefix}-"):
            times = {"pods": made, "pods/binding": bound}.get(what)
            if times is not None:
                times[about["name"]] = _seconds(event["stageTimestamp"])
    at = sorted(bound.values())
    return LiveFigures(
        bound=len(bound),
        latencies=tuple(sorted(bound[name] - made[name] for name in bound if name in made)),
        bindings_per_second=(len(at) - 1) / (at[-1] - at[0]) if len(at) > 1 else 0.0,
        calls=dict(calls),
        first_bound_at=at[0] if at else 0.0,
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
