"""Reduces a case to the smallest form for which the oracle (a program with kube-scheduler's own code) and
scheduler_core still give different results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]
# Answers, for many candidates at once, which of them still show the difference.
StillDiffers = Callable[[list[Case]], list[bool]]


def minimise(case: Case, pod: str, still_differs: StillDiffers) -> Case:
    """Returns the smallest form of the case for which `still_differs` is true. Removes halves
    of the objects, then quarters and so on, then single objects, and then fields of the remaining objects."""
    case = {**case, "pods": [pod], "objects": [o for o in case["objects"] if not _other_asked(o, case["pods"], pod)]}
    step = max(1, len(case["objects"]) // 2)
    while True:
        smaller = _first(case, list(_without_objects(case, step, pod)), still_differs)
        if smaller is not None:
            case = smaller
        elif step == 1:
            break
        else:
            step = max(1, step // 2)
    while (smaller := _first(case, list(_without_fields(case)), still_differs)) is not None:
        case = smaller
    return case


def _key(manifest: dict[str, Any]) -> str:
    return f"{manifest['metadata'].get('namespace', '')}/{manifest['metadata']['name']}"


def _other_asked(manifest: dict[str, Any], asked: list[str], pod: str) -> bool:
    return manifest["kind"] == "Pod" and _key(manifest) in asked and _key(manifest) != pod


def _first(case: Case, candidates: list[Case], still_differs: StillDiffers) -> Case | None:
    for start in range(0, len(candidates), 64):
        batch = [{**candidate, "id": str(i)} for i, candidate in enumerate(candidates[start : start + 64])]
        for candidate, differs in zip(batch, still_differs(batch), strict=True):
            if differs:
                return {**candidate, "id": case["id"]}
    return None


def _without_objects(case: Case, step: int, pod: str) -> Iterator[Case]:
    objects = case["objects"]
    for start in range(0, len(objects), step):
        kept = [
            o for i, o in enumerate(objects) if not start <= i < start + step or (o["kind"] == "Pod" and _key(o) == pod)
        ]
        if len(kept) < len(objects):
            yield {**case, "objects": kept}


def _without_fields(case: Case) -> Iterator[Case]:
    if "config" in case:
        yield {key: value for key, value in case.items() if key != "config"}
    for path in _paths(case):
        smaller = copy.deepcopy(case)
        target: Any = smaller
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
        yield smaller


def _paths(case: Case) -> Iterator[tuple[Any, ...]]:
    """Returns the path of every field and every list element that can be removed from an object. Short paths come
    first.
    """
    found: list[tuple[Any, ...]] = []

    def walk(value: Any, path: tuple[Any, ...]) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            if key not in (
                "apiVersion",
                "kind",
                "name",
                "namespace",
                "uid",
                "nodeName",
                "operator",
                "key",
                "topologyKey",
                "whenUnsatisfiable",
                "maxSkew",
            ):
                found.append((*path, key))
            walk(inner, (*path, key))

    for i, manifest in enumerate(case["objects"]):
        for part in ("metadata", "spec", "status"):
            walk(manifest.get(part, {}), ("objects", i, part))
    if "config" in case:
        walk(case["config"]["profiles"], ("config", "profiles"))
    yield from sorted(found, key=len)
