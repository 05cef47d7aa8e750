"""The embedded cluster's scheduler: the machine of `scheduler_core` decides; this loop passes it the changes of the
store and carries out its commands."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from drydock.controllers.ownership import PODS
from drydock.hosts.wake_up import wait_at_most
from drydock.server.api_errors import ApiError
from drydock.server.kinds.resources import BY_KIND, RESOURCE_TYPES
from drydock.server.store import Content, HistoryGone, ObjectChange
from drydock.server.verbs import DeleteOptions, Verbs, with_condition
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.cycle import Scheduler
from scheduler_core.running.commands import Answered, Bind, Command, DeleteVictim, LookAtPod, PatchVolume, WriteStatus
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.machine import Attempt, Machine

_ACTOR = "system:kube-scheduler"
_LOOKED_AT = tuple(r for r in RESOURCE_TYPES if r.kind in ClusterCache().kinds)
_TICK_SECONDS = 1.0


class SchedulerLoop:
    """Binds the pods of the default scheduler, until cancelled. `decisions` counts the cycles."""

    def __init__(self, verbs: Verbs) -> None:
        self.decisions = 0
        self._verbs = verbs
        self._machine = Machine(Scheduler(), on_attempt=self._count)
        self._seen = 0

    def _count(self, _attempt: Attempt) -> None:
        self.decisions += 1

    async def run(self) -> None:
        changed = asyncio.Event()
        stop_listening = self._verbs.store.listen([r.storage for r in _LOOKED_AT], changed.set)
        try:
            self._list()
            while True:
                self._obey(self._machine.tick(self._now()))
                while self._machine.has_work:
                    self._obey(self._machine.next(self._now()))
                    # Other tasks share the event loop: a burst of pods must not delay the API server.
                    await asyncio.sleep(0)
                    self._take_in_changes()
                await wait_at_most(changed, _TICK_SECONDS)
                changed.clear()
                self._take_in_changes()
        finally:
            stop_listening()

    def _now(self) -> float:
        return self._verbs.store.clock()

    # What happens --------------------------------------------------------------------------------------------

    def _list(self) -> None:
        self._seen = self._verbs.store.version
        for r in _LOOKED_AT:
            items = [stored.content for stored in self._verbs.store.items(r.storage)]
            self._obey(
                self._machine.take({"apiVersion": r.api_version, "kind": f"{r.kind}List", "items": items}, self._now())
            )

    def _take_in_changes(self) -> None:
        try:
            changed = [c for r in _LOOKED_AT for c in self._verbs.store.changes_after(r.storage, self._seen)]
        except HistoryGone:
            self._list()
            return
        self._seen = self._verbs.store.version
        for change in sorted(changed, key=lambda c: c.version):
            self._obey(self._machine.take({"type": change.kind, "object": _written(change)}, self._now()))

    # What the machine wants ----------------------------------------------------------------------------------

    def _obey(self, commands: tuple[Command, ...]) -> None:
        waiting = deque(commands)
        while waiting:
            command = waiting.popleft()
            if isinstance(command, Answered):
                waiting += self._machine.answered(command, self._outcome(command), self._now())

    def _outcome(self, command: Answered) -> WriteOutcome:
        try:
            content = self._carry_out(command)
        except ApiError as refusal:
            return WriteOutcome(code=refusal.code, message=refusal.message)
        meta = content["metadata"]
        node = content["spec"].get("nodeName") or "" if isinstance(command, LookAtPod) else ""
        return WriteOutcome(code=200, version=int(meta["resourceVersion"]), found_uid=meta["uid"], found_node=node)

    def _carry_out(self, command: Answered) -> Content:
        """The object afterwards."""
        verbs = self._verbs
        if isinstance(command, PatchVolume):
            resource = BY_KIND["v1", command.kind]
            namespace, _, name = command.key.rpartition("/")
            edit = _patched(command)
            return verbs.change(resource, namespace, name, edit, actor=_ACTOR).content
        namespace, _, name = command.pod.partition("/")
        if isinstance(command, Bind):
            target = {"metadata": {"uid": command.uid}, "target": {"kind": "Node", "name": command.node}}
            return verbs.bind(namespace, name, target, actor=_ACTOR).content
        if isinstance(command, LookAtPod):
            return verbs.read(PODS, namespace, name).content
        stored = verbs.change(PODS, namespace, name, self._told(command), actor=_ACTOR, subresource="status")
        if isinstance(command, DeleteVictim):
            return verbs.delete(PODS, namespace, name, DeleteOptions(uid=command.uid), actor=_ACTOR).content
        return stored.content

    def _told(self, command: WriteStatus | DeleteVictim) -> Any:
        if isinstance(command, DeleteVictim):
            kind, value, reason = "DisruptionTarget", "True", "PreemptionByScheduler"
        else:
            kind, value, reason = "PodScheduled", "False", command.reason

        def edit(old: dict[str, Any]) -> dict[str, Any]:
            status, known = dict(old["status"]), old["status"].get("conditions") or []
            if reason:
                status["conditions"] = with_condition(
                    known, kind, value, self._verbs.now(), reason=reason, message=command.message
                )
            if isinstance(command, DeleteVictim):
                return {**old, "metadata": {**old["metadata"], "uid": command.uid}, "status": status}
            if command.nominated_node is not None:
                status["nominatedNodeName"] = command.nominated_node
            return {**old, "metadata": _at_version(old, command.version), "status": status}

        return edit


def _patched(command: PatchVolume) -> Any:
    def edit(old: dict[str, Any]) -> dict[str, Any]:
        meta = _at_version(old, command.version)
        meta["annotations"] = {**(meta.get("annotations") or {}), **dict(command.annotations)}
        if not command.claim:
            return {**old, "metadata": meta}
        namespace, _, name = command.claim.partition("/")
        claim = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": command.claim_uid}
        return {**old, "metadata": meta, "spec": {**old["spec"], "claimRef": claim}}

    return edit


def _at_version(old: dict[str, Any], version: int | None) -> dict[str, Any]:
    return dict(old["metadata"]) if version is None else {**old["metadata"], "resourceVersion": str(version)}


def _written(change: ObjectChange) -> Content:
    """As a watch shows it: the last state of a deleted object, with the version of its deletion."""
    if change.after is not None:
        return change.after.content
    assert change.before is not None
    last = change.before.content
    return {**last, "metadata": {**last["metadata"], "resourceVersion": str(change.version)}}
