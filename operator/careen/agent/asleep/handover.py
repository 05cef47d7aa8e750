"""What the agent hands to the sleeper and gets back. Nothing of it permits an act: it saves requests, and keeps the
metrics one series."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from careen.agent.asleep import sleeper
from careen.agent.asleep.doorkeeper import Woken
from careen.cluster.wire.client import Credentials
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NodeView
from careen.core.lock.pauses import spread_seconds
from careen.core.steps.shared import stagger
from careen.settings.live import KeptSettings
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

PREFIXES = ["careen.dev/", "weave.works/"]
"""Of the annotations of a Node that an agent reacts to."""

_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


class CarriedMemory(Value, kw_only=True):
    """What the woken agent continues with."""

    memory: Memory = Memory()
    told: tuple[str, str] = ("", "")
    slept: tuple[float, ...] = ()
    settings: KeptSettings | None = None
    is_reviewed: bool = False
    """Whether the agent that fell asleep had every right, its own lock, and a self-test without problems."""


def remembered(woken: Woken | None) -> CarriedMemory:
    """Of an ordinary start if nothing usable was handed over."""
    if woken is None:
        return CarriedMemory()
    try:
        found = msgspec.convert(woken.handover.get("remembered"), CarriedMemory, strict=False)
    except (msgspec.ValidationError, TypeError):
        return CarriedMemory()
    memory = found.memory
    if isinstance(seen_at := woken.handover.get("need_seen_at"), (int, float)):
        memory = replace(memory, need_seen_at=float(seen_at))
    node = woken.handover.get("node")
    if isinstance(node, dict) and isinstance(version := node.get("seen"), int):
        memory = replace(memory, versions=replace(memory.versions, node=max(memory.versions.node, version)))
    return replace(found, memory=memory)


def server_of(credentials: Credentials, *, agent: str, kubeconfig: str) -> dict[str, Any]:
    """What the sleeper needs for its requests."""
    url = urlsplit(credentials.server)
    is_tls = url.scheme == "https"
    return {
        "host": url.hostname,
        "port": url.port or (443 if is_tls else 80),
        "prefix": url.path.rstrip("/"),
        "tls": is_tls,
        "insecure": credentials.insecure,
        "ca": credentials.ca_file,
        "certificate": credentials.certificate_file,
        "key": credentials.key_file,
        "agent": agent,
        # The kubelet renews the token; that of a kubeconfig stays.
        "token_file": "" if kubeconfig else _TOKEN,
        "authorization": credentials.authorization if kubeconfig else "",
    }


def node_of(node: NodeView, *, may_watch: bool) -> dict[str, Any]:
    """The Node as the agent last read it. Taints are not in the metadata: a change of them is seen at the next look."""
    metadata = {
        "uid": node.uid,
        "deletionTimestamp": None,
        "labels": dict(node.labels),
        "annotations": dict(node.annotations),
    }
    return {
        "path": f"/api/v1/nodes?fieldSelector=metadata.name%3D{node.name}",
        "own_path": f"/api/v1/nodes/{node.name}",
        "version": node.resource_version,
        "prefixes": PREFIXES,
        "signature": sleeper.object_signature(metadata, PREFIXES),
        "may_watch": may_watch,
    }


def config_of(namespace: str, name: str, kept: KeptSettings) -> dict[str, Any] | None:
    """The ConfigMap as the agent last read it; None without a `name`."""
    if not name:
        return None
    return {"path": f"/api/v1/namespaces/{namespace}/configmaps/{name}", "signature": list(kept.last_read)}


def moment_of(node: str, agents: int | None) -> dict[str, float] | None:
    """When in each minute of the clock a need wakes the agent of a large fleet."""
    every = spread_seconds(agents)
    if not every:
        return None
    return {"at": stagger.moment_seconds(node, every), "every": every, "lasts": stagger.MOMENT_SECONDS}


def stop_line(place: str) -> str:
    """What the log says if the process is stopped while it sleeps."""
    return f"{place}: the sleeping agent stops on request; the next agent continues from the Node's record and the lock"
