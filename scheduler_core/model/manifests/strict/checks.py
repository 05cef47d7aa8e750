"""Refuses manifests that are not what the caller means: of another kind, or with a misspelt field.

What an API server served needs no such check, and a newer server has fields that this release does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.strict.known_fields import unknown_field

_API_VERSIONS: Final = {"Pod": "v1", "Node": "v1", "PodDisruptionBudget": "policy/v1"}


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


def _instead(kind: str, given: str, manifest: Mapping[str, Any]) -> str:
    if given.endswith("List"):
        return ": pass its items one by one, or [the list] to load_objects"
    spec = manifest.get("spec")
    if kind == "Pod" and isinstance(spec, Mapping) and ("template" in spec or "jobTemplate" in spec):
        return ": pass a Pod with the metadata and the spec of its template"
    return ""


def check_fields(kind: str, manifest: Mapping[str, Any], key: str) -> None:
    """Raises ManifestError for a field that no supported release has."""
    found = unknown_field(kind, manifest)
    if found is None:
        return
    close = get_close_matches(found.path.rpartition(".")[2], found.known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    problem = f"no release from 1.32 to 1.37 has this field{meant} (strict=False ignores unknown fields)"
    raise ManifestError(kind=kind, key=key, field=found.path, problem=problem)
