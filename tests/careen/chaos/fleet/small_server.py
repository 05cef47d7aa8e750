"""Serves requests of agents from the embedded API server's store, without HTTP and without delay."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from datetime import datetime
from email.utils import format_datetime
from typing import Any

import msgspec

from careen.cluster.wire.transport import Request, Response
from careen.core.facts import keys
from drydock.server import api_errors
from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.kinds.object_rules import as_written
from drydock.server.kinds.resources import BY_KIND, resource_named
from drydock.server.requests.info import RequestInfo, request_info
from drydock.server.requests.patches import merge_patch
from drydock.server.requests.selectors import object_selector
from drydock.server.store import Store, Stored
from drydock.server.verbs import DeleteOptions, Verbs
from tests.careen.chaos.fleet.other_questions import other_answer

_encode = msgspec.json.Encoder().encode


class SmallServer:
    """People, kubelets and controllers send no requests: they call `verbs` directly."""

    def __init__(self, *, clock: Callable[[], float], wall_clock: Callable[[], datetime], seed: int = 0) -> None:
        self.store = Store(clock=clock)
        self.verbs = Verbs(self.store, wall_clock=wall_clock, chance=random.Random(seed))
        self._wall_clock = wall_clock
        self.page_size = 0
        """The most items per page; 0: as many as requested."""
        self.admit: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda _old, new: new
        """What is stored if an agent's write turns the first object into the second."""
        for name in ("careen", "shop"):
            self.verbs.create(resource_named("namespaces"), "", {"metadata": {"name": name}}, actor="seed")

    def answer(self, request: Request, actor: str) -> Response:
        """What a real server would answer, also an error."""
        try:
            return self._response(*self._act(request, actor))
        except ApiError as refusal:
            return self._response(
                refusal.code,
                _encode(refusal.status()),
                {name.lower(): value for name, value in refusal.headers.items()},
            )

    def refusal(self, code: int, message: str, **headers: str) -> Response:
        """An answer with a metav1.Status as its body."""
        return self._response(
            code,
            _encode(ApiError(code, "", message).status()),
            {name.replace("_", "-"): value for name, value in headers.items()},
        )

    def _response(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
        return Response(
            status=code,
            headers={"date": format_datetime(self._wall_clock(), usegmt=True), **(headers or {})},
            body=body,
        )

    def _act(self, request: Request, actor: str) -> tuple[int, bytes]:
        if (other := other_answer(request)) is not None:
            return other
        info = request_info(request.method, request.path, request.query)
        assert isinstance(info, RequestInfo)
        if info.verb == "get":
            return 200, self.verbs.read(info.resource, info.namespace, info.name).whole
        if info.verb == "watch":
            return 200, b""  # the events follow: `sleepers.Watch`
        if info.verb == "list":
            return 200, self._list(info, request)
        body: dict[str, Any] = json.loads(request.body or b"{}")
        if info.verb in ("patch", "update"):
            manager = request.query.get("fieldManager", keys.FIELD_MANAGER)  # the name in the agents' User-Agent
            changed = self.verbs.change(
                info.resource,
                info.namespace,
                info.name,
                _managed(
                    lambda old: self.admit(old, merge_patch(old, body) if info.verb == "patch" else body), manager
                ),
                actor=actor,
            )
            return 200, changed.whole
        if info.subresource == "eviction":
            options = DeleteOptions.from_body(body["deleteOptions"], dry_run="dryRun" in request.query)
            evict(self.verbs, info.namespace, info.name, options, actor=actor)
            return 201, _encode(
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            )
        if info.resource.plural == "events":
            return 201, self._event(body)
        raise api_errors.unknown_path(request.path)

    def _list(self, info: RequestInfo, request: Request) -> bytes:
        selected = object_selector(
            request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""), info.resource.storage
        )
        asked = int(request.query.get("limit", "0"))
        page = self.verbs.page(
            info.resource,
            info.namespace,
            selected=selected,
            limit=min(asked, self.page_size) if self.page_size else asked,
            token=request.query.get("continue", ""),
        )
        metadata = {"resourceVersion": str(page.version)}
        if page.next_token:
            metadata["continue"] = page.next_token
        head = {"kind": f"{info.resource.kind}List", "apiVersion": info.resource.api_version, "metadata": metadata}
        return _encode(head)[:-1] + b',"items":[' + b",".join(item.as_item for item in page.items) + b"]}"

    def _event(self, body: dict[str, Any]) -> bytes:
        """The Event as a server would create it. Nobody reads Events here, so none is stored."""
        metadata = body["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{self.store.version}"
        return _encode(
            {
                **body,
                "metadata": {
                    **metadata,
                    "name": name,
                    "uid": f"uid-{name}",
                    "resourceVersion": str(self.store.version),
                },
            }
        )

    # For all users except agents ---------------------------------------------------------------------------------

    def put(self, obj: dict[str, Any], *, actor: str = "seed") -> Stored:
        """Store the object with its status, and with the fields that a server adds."""
        resource = BY_KIND[obj["apiVersion"], obj["kind"]]
        metadata = {
            # Not the version: it goes back when etcd is restored from a backup, and a UID is never used again.
            "uid": f"uid-{len(self.store.journal) + 2}",
            "creationTimestamp": self.verbs.now(),
            **obj["metadata"],
        }
        return self.store.put(
            resource.storage,
            (metadata.get("namespace", ""), metadata["name"]),
            as_written(resource, {**obj, "metadata": metadata}),
            actor=actor,
            verb="create",
        )

    def get(self, plural: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        found = self.store.get(resource_named(plural).storage, (namespace, name))
        return None if found is None else dict(found.content)

    def all(self, plural: str) -> list[dict[str, Any]]:
        return [dict(each.content) for each in self.store.items(resource_named(plural).storage)]

    def change(
        self,
        plural: str,
        name: str,
        edit: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        actor: str,
        namespace: str = "",
        subresource: str = "",
    ) -> None:
        """Apply `edit` as the client `actor`. Does nothing if there is no such object."""
        if self.get(plural, name, namespace) is not None:
            self.verbs.change(
                resource_named(plural), namespace, name, _managed(edit, actor), actor=actor, subresource=subresource
            )

    def remove(self, plural: str, name: str, *, actor: str, namespace: str = "") -> None:
        if self.get(plural, name, namespace) is not None:
            self.store.remove(resource_named(plural).storage, (namespace, name), actor=actor, verb="delete")


def _managed(
    edit: Callable[[dict[str, Any]], dict[str, Any]], manager: str
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """`edit`, and a record in `managedFields` that `manager` changed the cordon, taints, or careen's labels and
    annotations; agents read no other part of it."""

    def edited(old: dict[str, Any]) -> dict[str, Any]:
        new = edit(old)
        entries = old["metadata"].get("managedFields") or []
        before, after = _owned(old), _owned(new)
        for path in {**before, **after}:
            if before.get(path) == after.get(path):
                continue
            entries = [each for each in entries if not _names(each["fieldsV1"], path)]
            if path in after:
                fields = functools.reduce(lambda inner, key: {f"f:{key}": inner}, reversed(path), dict[str, Any]())
                entries = [*entries, {"manager": manager, "operation": "Update", "fieldsV1": fields}]
        return (
            {**new, "metadata": {**new["metadata"], "managedFields": entries}}
            if entries or "managedFields" in new["metadata"]
            else new
        )

    return edited


def _owned(obj: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """By their paths, the values whose managers agents read."""
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    return {
        **{("spec", key): spec[key] for key in ("unschedulable", "taints") if spec.get(key)},
        **{
            ("metadata", kind, key): value
            for kind in ("labels", "annotations")
            for key, value in (metadata.get(kind) or {}).items()
            if key.startswith("careen.dev/")
        },
    }


def _names(fields: dict[str, Any], path: tuple[str, ...]) -> bool:
    for key in path:
        if f"f:{key}" not in fields:
            return False
        fields = fields[f"f:{key}"]
    return True
