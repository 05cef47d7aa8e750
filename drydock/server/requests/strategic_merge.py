"""Strategic merge patches: lists of named items merge by name, all other lists are replaced.

Source: apimachinery `util/strategicpatch/patch.go` and the `patchStrategy` tags of the API types, which a table here
maps by field name, with the parent fields where two fields share a name.
"""

from __future__ import annotations

import copy
from typing import Any

from drydock.server.api_errors import bad_request

# field name -> merge key; "parent.field" wins over "field". A list that is not named here is atomic:
# taints and tolerations for instance have no patch strategy, so a patch replaces the whole list.
_MERGE_KEYS: dict[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "conditions": "type",
    "addresses": "type",
    "ownerReferences": "uid",
    "secrets": "name",
    "ports": "containerPort",
    "spec.ports": "port",  # a Service's ports; a container's carry containerPort
    "podIPs": "ip",
    "hostIPs": "ip",
    "allocatedResourcesStatus": "name",
}
# Lists of plain values that merge as sets.
_MERGED_SETS = frozenset({"finalizers", "podCIDRs"})

_DELETE_SET = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """The patched document; the target stays as it is. Raises 400 for an unknown directive."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch must be an object")
    return _merge_object(target if isinstance(target, dict) else {}, patch, parent="")


def _merge_object(target: dict[str, Any], patch: dict[str, Any], parent: str) -> dict[str, Any]:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {k: copy.deepcopy(v) for k, v in patch.items() if k != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch directive {directive!r}")
    result = dict(target)
    if _RETAIN in patch:
        result = {k: v for k, v in result.items() if k in patch[_RETAIN]}
    for key, value in patch.items():
        if key.startswith(_DELETE_SET):
            field = key.removeprefix(_DELETE_SET)
            result[field] = [v for v in result.get(field) or [] if v not in value]
        elif not key.startswith("$"):
            _merge_field(result, key, value, parent, order=patch.get(_ORDER + key))
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and field not in patch and isinstance(result.get(field), list):
            result[field] = _ordered(result[field], order, _merge_key(parent, field))
    return result


def _merge_field(result: dict[str, Any], key: str, value: Any, parent: str, order: list[Any] | None) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        before = result.get(key)
        result[key] = _merge_object(before if isinstance(before, dict) else {}, value, parent=key)
    elif isinstance(value, list):
        before = result.get(key)
        merged = _merge_list(before if isinstance(before, list) else [], value, parent, key)
        result[key] = _ordered(merged, order, _merge_key(parent, key)) if order else merged
    else:
        result[key] = value


def _merge_key(parent: str, field: str) -> str | None:
    return _MERGE_KEYS.get(f"{parent}.{field}") or _MERGE_KEYS.get(field)


def _merge_list(target: list[Any], patch: list[Any], parent: str, field: str) -> list[Any]:
    if field in _MERGED_SETS:
        return [*target, *(v for v in patch if v not in target)]
    key = _merge_key(parent, field)
    if key is None or not all(isinstance(item, dict) for item in [*target, *patch]):
        return copy.deepcopy(patch)
    if any(item.get(_DIRECTIVE) == "replace" and len(item) == 1 for item in patch):
        return [copy.deepcopy(item) for item in patch if _DIRECTIVE not in item]
    return _merge_named(target, patch, key, field)


def _merge_named(target: list[Any], patch: list[Any], key: str, field: str) -> list[Any]:
    result = list(target)
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item!r} does not contain declared merge key: {key}")
        place = next((i for i, known in enumerate(result) if known.get(key) == item[key]), None)
        if item.get(_DIRECTIVE) == "delete":
            result = [known for known in result if known.get(key) != item[key]]
        elif place is None:
            result.append(_merge_object({}, item, parent=field))
        else:
            result[place] = _merge_object(result[place], item, parent=field)
    return result


def _ordered(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """In the order of the patch; items that it does not mention come last, in their old order."""
    wanted = [entry[key] if key and isinstance(entry, dict) else entry for entry in order]

    def place(item: Any) -> int:
        name = item.get(key) if key and isinstance(item, dict) else item
        return wanted.index(name) if name in wanted else len(wanted)

    return sorted(items, key=place)
