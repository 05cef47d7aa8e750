"""Verb and object of a request, from method, path and query, under the names that authorizers and the audit use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drydock.server import api_errors
from drydock.server.kinds.resources import BY_PATH, REVIEW_KINDS, ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    """A request for an object, or for a collection (`name` is empty)."""

    verb: str
    resource: ResourceType
    namespace: str
    name: str
    subresource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """A request such as an access review: the server fills the object in and returns it, and stores nothing."""

    kind: str
    api_version: str


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo | ReviewRequest:
    """Raises ApiError 404 for an unknown path, 405 for a verb that the path does not support."""
    parts = [part for part in path.split("/") if part]
    group, version, rest = _group_version(parts, path)
    namespace = ""
    if (
        rest[0] == "namespaces"
        and len(rest) >= 3
        and (group, version, rest[2]) in BY_PATH
        and BY_PATH[group, version, rest[2]].namespaced
    ):
        namespace, rest = rest[1], rest[2:]
    if (group, rest[0]) in REVIEW_KINDS:
        if method != "POST":
            raise api_errors.method_not_allowed(method)
        return ReviewRequest(kind=REVIEW_KINDS[group, rest[0]], api_version=f"{group}/{version}")
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3:
        raise api_errors.unknown_path(path)
    name, subresource = (rest[1] if len(rest) > 1 else ""), (rest[2] if len(rest) > 2 else "")
    if subresource and subresource not in resource.subresources:
        raise api_errors.unknown_path(path)
    if resource.namespaced and not namespace and name:
        raise api_errors.unknown_path(path)
    return RequestInfo(
        verb=_verb(method, name, subresource, query),
        resource=resource,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


def _group_version(parts: list[str], path: str) -> tuple[str, str, list[str]]:
    if len(parts) >= 3 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) >= 4 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    raise api_errors.unknown_path(path)


def _verb(method: str, name: str, subresource: str, query: Mapping[str, str]) -> str:
    match method, bool(name):
        case (("GET" | "HEAD"), True):
            return "get"
        case (("GET" | "HEAD"), False):
            return "watch" if query.get("watch") in ("true", "1") else "list"
        case "POST", False:
            return "create"
        case "POST", True if subresource in ("eviction", "binding"):
            return "create"
        case "PUT", True:
            return "update"
        case "PATCH", True:
            return "patch"
        case "DELETE", True if not subresource:
            return "delete"
        case "DELETE", False:
            return "deletecollection"
        case _:
            raise api_errors.method_not_allowed(method)
