"""The kubelets of all simulated nodes: they start and stop pods, and report their node's state.

`machines.py` takes hosts down and brings them back; `controllers/node_lifecycle.py` reacts to a node that is not ready.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from drydock.controllers.ownership import PODS, is_going
from drydock.rollout.timings import Timings
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.store import Content, Key
from drydock.server.verbs import DeleteOptions, Verbs, with_condition

_NODES = resource_named("nodes")
_ACTOR = "system:kubelet"


def can_start(pod: Content) -> bool:
    """Nobody can pull an image with the tag `broken`."""
    return not any(str(each.get("image", "")).endswith(":broken") for each in pod["spec"].get("containers") or ())


def start_seconds(pod: Content) -> float:
    """How long the slowest readiness probe waits before its first look."""
    containers = pod["spec"].get("containers") or ()
    return max(
        (float((each.get("readinessProbe") or {}).get("initialDelaySeconds", 0)) for each in containers), default=0.0
    )


class Kubelets:
    """All kubelets in one object. Each starts and stops a pod after a delay, and then looks first whether the pod
    has changed."""

    def __init__(self, verbs: Verbs, timings: Timings, chance: random.Random) -> None:
        self._verbs = verbs
        self._timings = timings
        self._chance = chance
        self._up: set[str] = set()
        # Operations in progress, so that a pod is not started twice: (uid, "start" | "stop").
        self._under_way: set[tuple[str, str]] = set()
        self._addresses = 0

    def node_is_up(self, name: str, boot_id: str) -> None:
        """Reports a freshly booted host as ready, and restarts the containers of its remaining pods."""
        self._up.add(name)
        self._report(name, ready=True, boot_id=boot_id)
        for stored in self._verbs.store.items(PODS.storage):
            if stored.content["spec"].get("nodeName") == name:
                self._look_at(stored.content, rebooted=True)

    def node_is_down(self, name: str) -> None:
        """The node becomes unready at once; a real cluster takes 40 s to notice."""
        self._up.discard(name)
        self._report(name, ready=False, boot_id="")

    async def run(self) -> None:
        changed = asyncio.Event()
        changed.set()
        seen = 0
        stop_listening = self._verbs.store.listen([PODS.storage], changed.set)
        try:
            while True:
                await changed.wait()
                changed.clear()
                changes = self._verbs.store.changes_after(PODS.storage, seen)
                seen = self._verbs.store.version
                for change in changes:
                    if change.after is not None:
                        self._look_at(change.after.content, rebooted=False)
        finally:
            stop_listening()

    def _report(self, name: str, *, ready: bool, boot_id: str) -> None:
        if self._verbs.store.get(_NODES.storage, ("", name)) is None:
            return

        def edit(node: dict[str, Any]) -> dict[str, Any]:
            status = dict(node["status"])
            status["conditions"] = with_condition(
                status.get("conditions") or [],
                "Ready",
                "True" if ready else "False",
                self._verbs.now(),
                reason="KubeletReady" if ready else "NodeStatusNeverUpdated",
            )
            if boot_id:
                status["nodeInfo"] = {**(status.get("nodeInfo") or {}), "bootID": boot_id}
            return {**node, "status": status}

        self._verbs.change(_NODES, "", name, edit, actor=_ACTOR, subresource="status")

    def _look_at(self, pod: Content, *, rebooted: bool) -> None:
        node, uid = pod["spec"].get("nodeName", ""), pod["metadata"]["uid"]
        if node not in self._up or pod["status"].get("phase") in ("Succeeded", "Failed"):
            return
        if is_going(pod):
            grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            self._later("stop", pod, min(grace, self._lasts(self._timings.pod_stop)))
        elif can_start(pod) and (
            pod["status"].get("phase") == "Pending" or (rebooted and (uid, "start") not in self._under_way)
        ):
            delay = self._timings.pod_start + self._timings.pace * start_seconds(pod)
            self._later("start", pod, self._lasts(delay))

    def _lasts(self, seconds: float) -> float:
        return seconds * self._chance.uniform(1 - self._timings.spread, 1 + self._timings.spread)

    def _later(self, what: str, pod: Content, seconds: float) -> None:
        uid = pod["metadata"]["uid"]
        if (uid, what) in self._under_way:
            return
        self._under_way.add((uid, what))
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        asyncio.get_running_loop().call_later(seconds, self._now, what, key, uid)

    def _now(self, what: str, key: Key, uid: str) -> None:
        self._under_way.discard((uid, what))
        stored = self._verbs.store.get(PODS.storage, key)
        if (
            stored is None
            or stored.content["metadata"]["uid"] != uid
            or stored.content["spec"].get("nodeName") not in self._up
        ):
            return
        if what == "stop":
            self._verbs.delete(PODS, key[0], key[1], DeleteOptions(grace_seconds=0, uid=uid), actor=_ACTOR)
        elif not is_going(stored.content):
            self._verbs.change(PODS, key[0], key[1], self._running, actor=_ACTOR, subresource="status")

    def _running(self, pod: dict[str, Any]) -> dict[str, Any]:
        status: dict[str, Any] = dict(pod["status"])
        if pod_is_ready(pod):
            return pod
        conditions = status.get("conditions") or []
        for kind in ("Initialized", "ContainersReady", "Ready"):
            conditions = with_condition(conditions, kind, "True", self._verbs.now())
        restarts = _restarts(status) + 1 if status.get("phase") == "Running" else 0
        self._addresses += 1
        address = status.get("podIP") or f"10.244.{self._addresses // 250}.{self._addresses % 250 + 1}"
        status.update(
            phase="Running",
            conditions=conditions,
            podIP=address,
            podIPs=[{"ip": address}],
            startTime=status.get("startTime") or self._verbs.now(),
            containerStatuses=[
                _container_status(c, restarts, self._verbs.now()) for c in pod["spec"].get("containers") or []
            ],
        )
        return {**pod, "status": status}


def _restarts(status: Mapping[str, Any]) -> int:
    return max((int(c.get("restartCount", 0)) for c in status.get("containerStatuses") or ()), default=-1)


def _container_status(container: Mapping[str, Any], restarts: int, now: str) -> dict[str, Any]:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sha256:{image}",
        "ready": True,
        "started": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": now}},
    }
