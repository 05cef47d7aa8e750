"""Reads the lock consistently, and writes it by compare-and-swap on the DaemonSet's resourceVersion.
`core/lock/content.py` parses and composes it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import Withheld
from careen.cluster.wire.writes import Written, write_guarded
from careen.core.actions import WriteLock
from careen.core.facts.keys import GATE_PREFIX
from careen.core.lock import notation
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading


class LockStore:
    """The lock: one annotation of one DaemonSet."""

    def __init__(self, api: ClusterApi, *, namespace: str, name: str, annotation: str) -> None:
        self._api = api
        self._path = f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/daemonsets/{quote(name, safe='')}"
        self._annotation = annotation

    async def read(self) -> LockReading:
        """Raises `ClusterError`; `NotFound` without the DaemonSet, which does not mean that the lock is free."""
        return self._reading(await self._api.get(self._path, objects.LockObject))

    async def write(self, wanted: WriteLock) -> Written[LockReading]:
        """Replaces the annotation, or removes it (None), if the DaemonSet still has the expected resourceVersion."""

        async def write(version: str) -> LockReading:
            try:
                found = await self._api.merge_patch(self._path, self._patch(version, wanted), objects.LockObject)
            except Withheld:
                found = await self._replace(version, wanted)
            return self._reading(found)

        async def read() -> tuple[str, LockReading]:
            seen = await self.read()
            return seen.resource_version, seen

        def stands(seen: LockReading) -> bool:
            # A DaemonSet that was recreated meanwhile is another lock; another form of the same content is not.
            is_same = seen.text == wanted.content or _means_the_same(seen, wanted)
            return is_same and seen.daemonset_uid == wanted.daemonset_uid

        return await write_guarded(version=wanted.expected_resource_version, write=write, read=read, stands=stands)

    async def _replace(self, version: str, wanted: WriteLock) -> objects.LockObject:
        """Writes the whole DaemonSet as it was read, as kured does: kured's Role has `update` but not `patch`. The
        resourceVersion on which the decision was based protects other clients' changes."""
        whole: dict[str, Any] = await self._api.get(self._path, dict)
        annotations = {**(whole["metadata"].get("annotations") or {}), self._annotation: wanted.content}
        whole["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
        whole["metadata"]["resourceVersion"] = version
        return await self._api.replace(self._path, whole, objects.LockObject)

    def _patch(self, version: str, wanted: WriteLock) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": version, "annotations": {self._annotation: wanted.content}}}

    def _reading(self, found: objects.LockObject) -> LockReading:
        meta = found.metadata
        return LockReading.of(
            (meta.annotations or {}).get(self._annotation),
            resource_version=meta.resource_version,
            daemonset_uid=meta.uid,
            annotation=self._annotation,
            # 0 until the controller has looked at the DaemonSet.
            gates={key: text for key, text in (meta.annotations or {}).items() if key.startswith(GATE_PREFIX)},
            agents=found.status.desired_number_scheduled or None,
        )


def _means_the_same(seen: LockReading, wanted: WriteLock) -> bool:
    return isinstance(seen.content, LockContent) and seen.content == notation.parse(wanted.content)
