"""The embedded cluster's scheduler: `scheduler_core` orders the pods and decides; this loop passes it objects and
binds.

A seed chooses among nodes of equal score, where the real scheduler chooses at random.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

from drydock.controllers.ownership import PODS, is_active
from drydock.hosts.wake_up import wait_at_most
from drydock.server.api_errors import ApiError
from drydock.server.kinds.resources import RESOURCE_TYPES
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs, with_condition
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.queue.assembly import queue_for
from scheduler_core.queue.events import FORCE_ACTIVATE
from scheduler_core.queue.hints.changes import pod_changes
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.snapshot import Snapshot

_ACTOR = "system:kube-scheduler"
# The kinds that decisions depend on; a change of any other kind does not change the snapshot.
_LOOKED_AT = tuple(
    r
    for r in RESOURCE_TYPES
    if r.plural
    in (
        "nodes",
        "pods",
        "namespaces",
        "services",
        "replicationcontrollers",
        "replicasets",
        "statefulsets",
        "poddisruptionbudgets",
        "persistentvolumeclaims",
        "persistentvolumes",
        "storageclasses",
        "csinodes",
        "csidrivers",
        "csistoragecapacities",
        "volumeattachments",
        "resourceclaims",
        "resourceslices",
        "deviceclasses",
    )
)
_FLUSH_SECONDS = 1.0
_SCHEDULER_NAME = "default-scheduler"


class SchedulerLoop:
    """Binds the pods of the default scheduler, until cancelled. `decisions` counts the cycles."""

    def __init__(self, verbs: Verbs, *, seed: int) -> None:
        self.decisions = 0
        self._verbs = verbs
        self._scheduler = Scheduler()
        self._chance = random.Random(seed)
        # Its hints are not used: in a cluster this small, every refused pod is tried again after any change.
        self._queue = queue_for(self._scheduler)
        self._known: dict[str, tuple[Pod, Content]] = {}
        self._seen = 0
        self._snapshot: Snapshot | None = None

    async def run(self) -> None:
        changed = asyncio.Event()
        changed.set()
        stop_listening = self._verbs.store.listen([r.storage for r in _LOOKED_AT], changed.set)
        try:
            while True:
                if not await wait_at_most(changed, _FLUSH_SECONDS):
                    self._queue.flush_backoff(time.time())
                changed.clear()
                self._take_in_changes()
                while (queued := self._queue.pop()) is not None:
                    self._schedule(queued)
                    # Other tasks share the event loop: a burst of pods must not delay the API server.
                    await asyncio.sleep(0)
                    self._take_in_changes()
        finally:
            stop_listening()

    # The queue -----------------------------------------------------------------------------------------------

    def _take_in_changes(self) -> None:
        changed = [c for r in _LOOKED_AT for c in self._verbs.store.changes_after(r.storage, self._seen)]
        self._seen = self._verbs.store.version
        foreign = [c for c in changed if c.actor != _ACTOR]
        if foreign:
            self._snapshot = None
        for change in sorted(changed, key=lambda c: c.version):
            if change.storage == PODS.storage:
                self._take_in_pod(
                    None if change.after is None else change.after.content, f"{change.key[0]}/{change.key[1]}"
                )
        if any(c.storage != PODS.storage or c.after is None for c in foreign):
            self._queue.move_all(FORCE_ACTIVATE, None, None, time.time())

    def _take_in_pod(self, content: Content | None, key: str) -> None:
        known = self._known.get(key)
        waits = content is not None and _waits_for_us(content)
        if known is not None and (
            content is None or not waits or content["metadata"]["uid"] != known[1]["metadata"]["uid"]
        ):
            self._queue.delete(known[0])
            del self._known[key]
            known = None
        if content is not None and waits and known is None:
            pod = pod_from_manifest(content, strict=False)
            self._known[key] = (pod, content)
            self._queue.add(pod, time.time())
        elif content is not None and known is not None and content["spec"] != known[1]["spec"]:
            pod = pod_from_manifest(content, strict=False)  # such as one whose last scheduling gate was removed
            self._known[key] = (pod, content)
            self._queue.update(known[0], pod, pod_changes(known[0], pod), time.time())

    # One pod -------------------------------------------------------------------------------------------------

    def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if pod.key not in self._known:
            self._queue.done(pod)
            return
        self.decisions += 1
        snapshot = self._current_snapshot()
        result = self._scheduler.schedule(snapshot, pod)
        if result.node is None:
            self._refuse(queued, result)
            return
        node = self._chance.choice(result.best)
        try:
            self._verbs.bind(
                pod.namespace,
                pod.name,
                {"metadata": {"uid": pod.uid}, "target": {"kind": "Node", "name": node}},
                actor=_ACTOR,
            )
        except ApiError:
            # The pod was deleted between the read and the bind; its deletion event follows.
            self._snapshot = None
        else:
            self._snapshot = snapshot.with_pod_placed(pod, node)
        self._queue.done(pod)

    def _current_snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = load_objects(self._objects(), strict=False)
        return self._snapshot

    def _objects(self) -> Iterator[Mapping[str, Any]]:
        for resource in _LOOKED_AT:
            for stored in self._verbs.store.items(resource.storage):
                if resource is not PODS or stored.content["spec"].get("nodeName"):
                    yield stored.content

    def _refuse(self, queued: QueuedPod, result: CycleResult) -> None:
        """Writes on the pod why no node fits, preempts if that makes room, and puts the pod back into the queue."""
        pod = queued.pod
        nomination = result.preemption
        if nomination is not None:
            for victim in nomination.victims:
                namespace, _, name = victim.partition("/")
                self._verbs.delete(PODS, namespace, name, DeleteOptions(), actor=_ACTOR)

        def edit(old: dict[str, Any]) -> dict[str, Any]:
            conditions = with_condition(
                old["status"].get("conditions") or [],
                "PodScheduled",
                "False",
                self._verbs.now(),
                reason="Unschedulable",
                message=result.sentence,
            )
            nominated = {"nominatedNodeName": nomination.node} if nomination is not None else {}
            return {**old, "status": {**old["status"], "conditions": conditions, **nominated}}

        # If the pod was deleted meanwhile, the queue learns of it with the next changes.
        with contextlib.suppress(ApiError):
            self._verbs.change(PODS, pod.namespace, pod.name, edit, actor=_ACTOR, subresource="status")
        self._queue.add_unschedulable(queued, time.time(), refused_by=("any",))


def _waits_for_us(content: Content) -> bool:
    return (
        not content["spec"].get("nodeName")
        and content["spec"].get("schedulerName") == _SCHEDULER_NAME
        and is_active(content)
    )
