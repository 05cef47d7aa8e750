"""Discovery: groups, versions, kinds, and the minimal OpenAPI that `kubectl apply` needs."""

from __future__ import annotations

from typing import Any

from drydock.server.kinds.resources import RESOURCE_TYPES, REVIEW_KINDS, ResourceType

# The release whose behaviour `object_rules.py`, `evictions.py` and the scheduler's default follow.
SERVER_VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+careen-demo",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SCALE_KIND = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def discovery_answer(path: str) -> dict[str, Any] | None:
    """The document at a path; None if the path does not belong to discovery."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["openapi"]:
        return _open_api_answer(parts[1:])
    match parts:
        case ["version"]:
            return dict(SERVER_VERSION)
        case ["api"]:
            return {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
            }
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in _groups()]}
        case ["apis", group] if group in _groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        case ["api", version] if version == "v1":
            return _resource_list("", version)
        case ["apis", group, version] if (group, version) in _group_versions():
            return _resource_list(group, version)
        case _:
            return None


def _open_api_answer(parts: list[str]) -> dict[str, Any] | None:
    match parts:
        case ["v2"]:
            return {
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": SERVER_VERSION["gitVersion"]},
                "paths": {},
                "definitions": {},
            }
        case ["v3"]:
            return {
                "paths": {
                    _open_api_path(g, v): {"serverRelativeURL": f"/openapi/v3/{_open_api_path(g, v)}?hash=1"}
                    for g, v in _group_versions()
                }
            }
        case ["v3", "api", version]:
            return _open_api("", version)
        case ["v3", "apis", group, version]:
            return _open_api(group, version)
        case _:
            return None


def _group_versions() -> list[tuple[str, str]]:
    served = [(r.group, r.version) for r in RESOURCE_TYPES] + [(group, "v1") for group, _ in REVIEW_KINDS]
    return list(dict.fromkeys(served))


def _groups() -> list[str]:
    return [group for group, _ in _group_versions() if group]


def _group(name: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{name}/{v}", "version": v} for g, v in _group_versions() if g == name]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group: str, version: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for resource in RESOURCE_TYPES:
        if (resource.group, resource.version) == (group, version):
            rows.append(_row(resource))
            rows.extend(_subresource_row(resource, sub) for sub in resource.subresources)
    rows.extend(
        {"name": plural, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}
        for (g, plural), kind in REVIEW_KINDS.items()
        if g == group
    )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": rows,
    }


def _row(resource: ResourceType) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.plural in ("pods", "services", "deployments", "replicasets", "statefulsets", "daemonsets"):
        row["categories"] = ["all"]
    return row


def _subresource_row(resource: ResourceType, sub: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": f"{resource.plural}/{sub}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    }
    match sub:
        case "eviction":
            # kubectl drain looks for exactly this row before it trusts evictions.
            row.update(group="policy", version="v1", kind="Eviction", verbs=["create"])
        case "binding":
            row.update(kind="Binding", verbs=["create"])
        case "scale":
            row.update(_SCALE_KIND)
    return row


def _open_api_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _open_api(group: str, version: str) -> dict[str, Any]:
    """Paths and kinds without schemas.

    PATCH has a parameter `fieldValidation`, so kubectl leaves validation to the server. Without schemas, kubectl uses
    its own types for strategic merge patches of built-in kinds.
    """
    paths: dict[str, Any] = {}
    for resource in RESOURCE_TYPES:
        if (resource.group, resource.version) == (group, version):
            scope = "/namespaces/{namespace}" if resource.namespaced else ""
            gvk = {"group": group, "version": version, "kind": resource.kind}
            parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": True}}]
            operation = {
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": gvk,
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
            }
            paths[f"/{_open_api_path(group, version)}{scope}/{resource.plural}/{{name}}"] = {"patch": operation}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": SERVER_VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": {}},
    }
