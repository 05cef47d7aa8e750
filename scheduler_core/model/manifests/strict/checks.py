"""Refuses manifests that are not what the caller means: of another kind, or with a misspelt field or value.

What an API server served needs no such check, and a newer server has fields that this release does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.strict.known_fields import WrongValue, first_mistake

WORKLOADS: Final = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
_STEP: Final = re.compile(r"[^.\[\]]+")
_JSON_TYPES: Final[Mapping[str, type]] = {
    "bool": bool,
    "null": type(None),
    "array": list,
    "object": dict,
    "int": int,
    "float": float,
    "str": str,
}
_API_VERSIONS: Final = {"Pod": "v1", "Node": "v1", "PodDisruptionBudget": "policy/v1", **WORKLOADS}


def check_kind(kind: str, manifest: object, key: str) -> None:
    """Raises ManifestError for a manifest of another kind. One without a kind passes."""
    if not isinstance(manifest, Mapping):
        what = "a text: parse it first" if isinstance(manifest, str | bytes) else f"a {type(manifest).__name__}"
        problem = f"expected a mapping with the fields of a {kind}, got {what}"
        raise ManifestError(kind=kind, key=key, field="", problem=problem)
    given, version = manifest.get("kind") or kind, manifest.get("apiVersion") or _API_VERSIONS[kind]
    if given == kind and version == _API_VERSIONS[kind]:
        return
    if given == kind:
        problem = f"{version!r} has no {kind}: expected {_API_VERSIONS[kind]!r}"
        raise ManifestError(kind=kind, key=key, field="apiVersion", problem=problem)
    problem = f"expected a {kind}, got a {given}{_instead(kind, str(given), manifest)}"
    raise ManifestError(kind=kind, key=key, field="kind", problem=problem)


def check_workload(manifest: object, key: str) -> str:
    """The workload's kind. Raises ManifestError for a manifest of another kind or without one."""
    given = manifest.get("kind") if isinstance(manifest, Mapping) else "workload"
    if isinstance(manifest, Mapping) and not (isinstance(given, str) and given in WORKLOADS):
        problem = f"expected one of {', '.join(WORKLOADS)}, got {given!r}"
        raise ManifestError(kind="workload", key=key, field="kind", problem=problem)
    check_kind(str(given), manifest, key)
    return str(given)


def _instead(kind: str, given: str, manifest: Mapping[str, Any]) -> str:
    if given.endswith("List"):
        return ": pass its items one by one, or [the list] to load_objects"
    spec = manifest.get("spec")
    if kind == "Pod" and isinstance(spec, Mapping) and ("template" in spec or "jobTemplate" in spec):
        return ": pass a Pod with the metadata and the spec of its template"
    return ""


class WrongValueError(ManifestError):
    """A field has a value that no API server accepts."""


def check_fields(kind: str, manifest: Mapping[str, Any], key: str, *, values: bool = True) -> None:
    """Raises ManifestError for a field that no supported release has, or, with `values`, WrongValueError for a value
    that no API server accepts."""
    found = first_mistake(kind, manifest, values=values)
    if found is None:
        return
    if isinstance(found, WrongValue):
        if (unreadable := invalid_text(kind, manifest, key)).field:
            raise unreadable
        problem = f"{found.problem} (strict=False accepts it)"
        raise WrongValueError(kind=kind, key=key, field=found.path, problem=problem)
    close = get_close_matches(found.path.rpartition(".")[2], found.known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    problem = f"no release from 1.32 to 1.37 has this field{meant} (strict=False ignores unknown fields)"
    raise ManifestError(kind=kind, key=key, field=found.path, problem=problem)


def key_of_map(manifest: object, field: str, problem: str) -> str:
    """The field with the key of the map for `[...]`, which msgspec writes in its place: the first key whose value has
    the type that the problem names."""
    before, dots, _ = field.partition("[...]")
    if not dots:
        return field
    value: Any = manifest
    for name in _STEP.findall(before):
        try:
            value = value[int(name)] if isinstance(value, list | tuple) else value[name]
        except (KeyError, IndexError, TypeError, ValueError):
            return field
    wrong = _JSON_TYPES.get(problem.rpartition("got `")[2].rstrip("`"))
    if wrong is None or not isinstance(value, Mapping):
        return field
    return next((f"{before}.{key}" for key, each in value.items() if type(each) is wrong), field)


def invalid_text(kind: str, manifest: object, key: str) -> ManifestError:
    """The error for an object with a text that UTF-8 cannot write, such as half of a surrogate pair."""
    problem = "is no valid Unicode text: write it without unpaired surrogates"
    return ManifestError(kind=kind, key=key, field=_invalid_place(manifest, "") or "", problem=problem)


def _invalid_place(value: object, path: str) -> str | None:
    if isinstance(value, str):
        return None if value.encode(errors="replace").decode() == value else path
    if isinstance(value, Mapping):
        pairs = [(f"{path}.{each}".lstrip("."), (each, inner)) for each, inner in value.items()]
    else:
        items = value if isinstance(value, list | tuple) else ()
        pairs = [(f"{path}[{place}]", ("", each)) for place, each in enumerate(items)]
    return next((found for where, several in pairs for each in several if (found := _invalid_place(each, where))), None)
