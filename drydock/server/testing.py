"""An API server for tests: `async with running_server() as server: ... server.url, server.store`.

Part of drydock because the tests of several packages use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drydock.rollout.kubeconfig import write_kubeconfig
from drydock.server.api_server import ApiServer, embedded_api
from drydock.server.kinds.object_rules import as_written
from drydock.server.kinds.resources import BY_KIND, resource_named
from drydock.server.store import Stored
from drydock.server.verbs import DeleteOptions


class RunningServer:
    """A listening API server. `store`, `verbs` and `url` are shortcuts into `api`, the server itself."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.store = api.store
        self.verbs = api.verbs
        self.url = api.url

    def seed(self, *objects: dict[str, Any]) -> list[Stored]:
        """Stores the objects with apiVersion, kind and status. Adds what a real server always sets, and missing
        namespaces."""
        return [self._seed(obj) for obj in objects]

    def _seed(self, obj: dict[str, Any]) -> Stored:
        resource = BY_KIND[obj["apiVersion"], obj["kind"]]
        metadata = dict(obj["metadata"])
        namespace = metadata.setdefault("namespace", "default") if resource.namespaced else ""
        namespaces = resource_named("namespaces")
        if namespace and self.store.get(namespaces.storage, ("", namespace)) is None:
            self.verbs.create(namespaces, "", {"metadata": {"name": namespace}}, actor="seed")
        metadata.setdefault("uid", f"uid-{resource.plural}-{namespace}-{metadata['name']}")
        metadata.setdefault("creationTimestamp", self.verbs.now())
        return self.store.put(
            resource.storage,
            (namespace, metadata["name"]),
            as_written(resource, {**obj, "metadata": metadata}),
            actor="seed",
            verb="create",
        )

    def get(self, plural: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """The current object, or None. Namespaced kinds: by default in `default`."""
        resource = resource_named(plural)
        found = self.store.get(resource.storage, (namespace or ("default" if resource.namespaced else ""), name))
        return None if found is None else dict(found.content)

    def write_kubeconfig(self, path: Path, *, user: str = "admin", namespace: str = "default") -> Path:
        return write_kubeconfig(path, self.url, user=user, namespace=namespace)


@contextlib.asynccontextmanager
async def running_server(*, pod_stop_seconds: float | None = 0.0, **options: Any) -> AsyncIterator[RunningServer]:
    """Runs a server on a free loopback port, in this event loop.

    A deleted or evicted pod goes after `pod_stop_seconds`, as if a kubelet stopped it; with None it stays. Further
    options go to `embedded_api` (seed, users, authorizer, plan, bookmark_seconds, history_length).
    """
    api = embedded_api(clock=time.monotonic, wall_clock=lambda: datetime.now(UTC), **options)
    await api.start()
    stop = _stop_pods_after(api, pod_stop_seconds) if pod_stop_seconds is not None else (lambda: None)
    try:
        yield RunningServer(api)
    finally:
        stop()
        await api.stop()


def _stop_pods_after(api: ApiServer, seconds: float) -> Any:
    """Removes each pod `seconds` after its deletion, because no kubelet stops pods in tests."""
    pods, loop = resource_named("pods"), asyncio.get_running_loop()
    seen: set[str] = set()

    def finish(namespace: str, name: str, uid: str) -> None:
        found = api.store.get(pods.storage, (namespace, name))
        if found is not None and found.content["metadata"]["uid"] == uid:
            api.verbs.delete(pods, namespace, name, DeleteOptions(grace_seconds=0), actor="system:kubelet")

    def look() -> None:
        change = api.store.journal[-1]
        if change.after is None or "deletionTimestamp" not in change.after.content["metadata"]:
            return
        uid = change.after.content["metadata"]["uid"]
        if uid not in seen:
            seen.add(uid)
            loop.call_later(seconds, finish, *change.key, uid)

    return api.store.listen([pods.storage], look)


@contextlib.contextmanager
def server_in_thread(**options: Any) -> Iterator[RunningServer]:
    """`running_server` with its own event loop in a thread, for tests with blocking code.

    A test may read `store` at any time. To write, it sends HTTP requests, or calls `seed` before other clients connect.
    """
    started: threading.Event = threading.Event()
    holder: dict[str, Any] = {}

    async def serve() -> None:
        holder["stop"] = asyncio.Event()
        holder["loop"] = asyncio.get_running_loop()
        async with running_server(**options) as server:
            holder["server"] = server
            started.set()
            await holder["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="embedded-api", daemon=True)
    thread.start()
    if not started.wait(10):
        raise RuntimeError("the embedded API server did not start within 10 s")
    try:
        yield holder["server"]
    finally:
        holder["loop"].call_soon_threadsafe(holder["stop"].set)
        thread.join(10)


__all__ = ["RunningServer", "running_server", "server_in_thread", "write_kubeconfig"]
