"""Checks that a 2xx response contains the requested object or list.

A proxy may answer 200 with `{}`, a `Status`, `{"items": null}` or a login page in JSON. Without a check that would look
like a Node without taints, a node without pods, or a lock without claims.

The path determines what the response must contain; any other raises `UnreadableAnswer`. Then a read is repeated; after
a write, a read shows whether the server applied it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from careen.cluster.wire.errors import UnreadableAnswer
from scheduler_core.values import Value

T = TypeVar("T")

KINDS = {
    "configmaps": "ConfigMap",
    "csidrivers": "CSIDriver",
    "csinodes": "CSINode",
    "csistoragecapacities": "CSIStorageCapacity",
    "daemonsets": "DaemonSet",
    "deviceclasses": "DeviceClass",
    "events": "Event",
    "jobs": "Job",
    "leases": "Lease",
    "namespaces": "Namespace",
    "nodes": "Node",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "pods": "Pod",
    "replicasets": "ReplicaSet",
    "replicationcontrollers": "ReplicationController",
    "resourceclaims": "ResourceClaim",
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "services": "Service",
    "statefulsets": "StatefulSet",
    "storageclasses": "StorageClass",
    "volumeattachments": "VolumeAttachment",
}
"""The kind of each requested resource. Without it a response could not be told from a proxy's page."""


class RequestedObject(Value):
    """What is at an API path; `namespace` and `name` are empty if the path has none."""

    api_version: str
    kind: str
    namespace: str
    name: str


def asked_for(path: str) -> RequestedObject:
    """Raises KeyError for a resource that `KINDS` does not contain."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return RequestedObject(version, KINDS[rest[0]], namespace, rest[1] if len(rest) > 1 else "")


class _Meta(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _Object(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    kind: str
    metadata: _Meta
    api_version: str | None = None


class _Kind(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    kind: str
    api_version: str | None = None


class _Item(msgspec.Struct, gc=False, frozen=True):
    """A real server sends list items without a kind."""

    metadata: _Meta


class _ListMeta(
    msgspec.Struct, gc=False, frozen=True, rename={"resource_version": "resourceVersion", "continue_token": "continue"}
):
    resource_version: str
    continue_token: str = ""


class _List(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    kind: str
    metadata: _ListMeta
    items: list[_Item]
    api_version: str | None = None


class _Success(msgspec.Struct, gc=False, frozen=True):
    kind: str
    status: str
    code: int | None = None


def the_object(body: bytes, path: str, kind: type[T], what: str) -> T:
    """The object at `path`, or, if that is a list, the object that the request created in it. Raises `UnreadableAnswer`
    for another."""
    asked, head = asked_for(path), decoded(body, _Object, what)
    _same_kind(head, asked.kind, asked, what)
    _same_object(head.metadata, asked, what)
    return decoded(body, kind, what)


def the_review(body: bytes, path: str, kind: type[T], what: str) -> T:
    """A review, such as a SelfSubjectAccessReview, is not stored, so it has no name and no version to check."""
    asked = asked_for(path)
    _same_kind(decoded(body, _Kind, what), asked.kind, asked, what)
    return decoded(body, kind, what)


def the_page(body: bytes, path: str, what: str, *, after: str = "") -> str:
    """The token for the next page; "" after the last. `after` is the token of this page's request."""
    asked, head = asked_for(path), decoded(body, _List, what)
    _same_kind(head, f"{asked.kind}List", asked, what)
    if not head.metadata.resource_version:
        raise UnreadableAnswer(f"{what}: the answer is a list without a resourceVersion")
    for item in head.items:
        _same_object(item.metadata, asked, what)
    if after and head.metadata.continue_token == after:
        raise UnreadableAnswer(f"{what}: the answer repeats the continue token of the request")
    return head.metadata.continue_token


def is_evicted(body: bytes, what: str) -> None:
    """The response to an eviction is a Status with Success and the code 201, 0 or none
    (registry/core/pod/storage/eviction.go). Raises `UnreadableAnswer` for any other."""
    said = decoded(body, _Success, what)
    if said.kind != "Status" or said.status != "Success" or said.code not in (None, 0, 201):
        raise UnreadableAnswer(
            f"{what}: the answer does not say that the pod is evicted; it has kind {said.kind}, status {said.status} "
            f"and code {said.code}"
        )


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """Raises `UnreadableAnswer` for a proxy's page, and for a field that is missing or of the wrong type."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, OverflowError, RecursionError) as error:
        raise UnreadableAnswer(f"{what}: the answer is not what the API promises: {error}") from error


def list_of(kind: type[T]) -> type[Any]:
    """The struct of a list of `kind`, made once for each kind."""
    if kind not in _LISTS:
        _LISTS[kind] = msgspec.defstruct(f"{kind.__name__}List", [("items", list[kind])], gc=False, frozen=True)  # type: ignore[valid-type]
    return _LISTS[kind]


_LISTS: dict[type[Any], type[Any]] = {}


def refuse_others(others: Iterable[str], what: str) -> None:
    """Raises UnreadableAnswer for items that the request's selector excludes: a proxy may have removed the selector."""
    if unselected := next(iter(others), None):
        raise UnreadableAnswer(f"{what}: the answer has {unselected}, which the request does not select")


def _same_kind(head: _Object | _Kind | _List, kind: str, asked: RequestedObject, what: str) -> None:
    if head.kind != kind or head.api_version not in (None, asked.api_version):
        raise UnreadableAnswer(
            f"{what}: the answer is a {head.kind or 'nameless kind'} of {head.api_version or 'no version'}, "
            f"not a {kind} of {asked.api_version}"
        )


def _same_object(meta: _Meta, asked: RequestedObject, what: str) -> None:
    if not (meta.name and meta.uid and meta.resource_version):
        raise UnreadableAnswer(f"{what}: the answer has an object without name, uid or resourceVersion")
    if (asked.name and meta.name != asked.name) or (asked.namespace and meta.namespace != asked.namespace):
        raise UnreadableAnswer(f"{what}: the answer is about the other object {meta.namespace}/{meta.name}")
