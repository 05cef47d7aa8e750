"""Snapshots from files: a dump, or manifests as people keep them, before an API server has seen them.

The only module of this package that opens files, those that its caller names. YAML needs PyYAML; JSON does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import manifest_key
from scheduler_core.model.manifests.strict.checks import WORKLOADS
from scheduler_core.model.manifests.workload_from_manifest import workload_from_manifest
from scheduler_core.snapshot.dump import read_dump
from scheduler_core.snapshot.loading import Collector, add_object
from scheduler_core.snapshot.pods.daemons import daemon_of, pinned, wants
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import replace_value

Manifest = Mapping[str, Any]
Source = str | bytes | Path | Manifest | Iterable[Manifest]

_SUFFIXES: Final = (".yaml", ".yml", ".json")
# In YAML, three hyphens at the beginning of a line always start another document.
_NEXT_DOCUMENT: Final = re.compile(r"^(?:---(?=\s|$)|\.\.\.\s*$)", re.MULTILINE)
_SPEC_PATHS: Final = {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}
_TEMPLATE_PATH: Final = ("spec", "template", "spec")
_PRIORITIES: Final = 2**31
_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def from_dump(source: str | Path | BinaryIO) -> Snapshot:
    """For `Snapshot.from_dump`."""
    if not isinstance(source, str | Path):
        if not hasattr(source, "read"):
            raise TypeError(
                f"source is a {type(source).__name__}: pass the path of a dump, or a file opened in binary mode"
            )
        return read_dump(source).snapshot
    with Path(source).open("rb") as file:
        return read_dump(file).snapshot


def from_manifests(sources: Iterable[Source], *, strict: bool) -> Snapshot:
    """For `Snapshot.from_manifests`."""
    manifests = [each for source in sources for each in _manifests(source)]
    collector, classes = Collector(), _priority_classes(manifests)
    workloads = []
    for manifest in manifests:
        if (wrong := _wrong_class(manifest)) is not None:
            collector.problems.append(wrong)
        try:
            complete = _as_admitted(manifest, classes)
        except ManifestError as problem:
            collector.problems.append(problem)
            continue
        if _is_to_be_made(complete):
            workloads.append(complete)
        else:
            add_object(collector, complete, strict=strict, by_people=True)
    for workload in workloads:
        try:
            _add_workload(collector, workload, strict=strict)
        except ManifestError as problem:
            collector.problems.append(problem)
    return collector.snapshot()


# ---- sources ----


def _manifests(source: Source) -> Iterator[Manifest]:
    """Lists are taken apart, so that workloads in them are seen."""
    if isinstance(source, Mapping):
        items = source.get("items")
        if str(source.get("kind", "")).endswith("List") and isinstance(items, list | tuple):
            head = {"kind": str(source["kind"]).removesuffix("List"), "apiVersion": source.get("apiVersion", "")}
            for item in items:
                yield from _manifests({**head, **item} if isinstance(item, Mapping) and head["kind"] else item)
        else:
            yield source
    elif isinstance(source, bytes):
        yield from _documents(_Text("the text", source.decode()))
    elif isinstance(source, str | Path):
        for text in _texts(source):
            yield from _documents(text)
    elif isinstance(source, Iterable):
        for each in source:
            yield from _manifests(each)
    else:
        given = type(source).__name__
        raise TypeError(f"from_manifests takes files, folders, texts and mappings, got a {given}")


class _Text(NamedTuple):
    where: str
    text: str


def _texts(source: str | Path) -> Iterator[_Text]:
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("{", "["))):
        yield _Text("the text", source)
        return
    path = Path(source)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        if not files:
            raise FileNotFoundError(f"folder {path} has no file that ends in {', '.join(_SUFFIXES)}")
    elif path.is_file():
        files = [path]
    else:
        raise FileNotFoundError(f"there is no file or folder {str(source)!r}; a text of manifests has several lines")
    for file in files:
        try:
            yield _Text(str(file), file.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} cannot be read: {error}") from error


def _documents(text: _Text) -> Iterator[Manifest]:
    parts = [text.text] if text.text.lstrip().startswith(("{", "[")) else _NEXT_DOCUMENT.split(text.text)
    for number, part in enumerate(parts, 1):
        where = text.where if len(parts) == 1 else f"{text.where}, part {number}"
        found = _parsed(part, where)
        if isinstance(found, Mapping | list):
            yield from _manifests(found)
        elif found is not None:
            raise ValueError(f"{where}: expected an object with a kind, got {str(found)[:40]!r}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return msgspec.yaml.decode(text)
    except ImportError:
        raise ImportError(f"{where} is YAML, which needs PyYAML: `pip install pyyaml`, or pass JSON") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{where} is neither YAML nor JSON: {error}") from error


# ---- what an API server adds ----


def _as_admitted(manifest: Manifest, classes: Mapping[str, int]) -> Manifest:
    """With requests from limits, the priority of the class, and a node's allocatable amounts from its capacity, unless
    an API server has already seen it."""
    kind = manifest.get("kind")
    if kind == "Node":
        return _changed(manifest, ("status",), lambda status: {"allocatable": status.get("capacity"), **status})
    if kind not in ("Pod", *WORKLOADS) or _is_served(manifest):
        return manifest
    path = _SPEC_PATHS.get(str(kind), _TEMPLATE_PATH)

    def complete(spec: Manifest) -> Manifest:
        groups = {name: _with_requests(spec[name]) for name in ("containers", "initContainers") if name in spec}
        return {**spec, **groups, **_priority(spec)}

    def _priority(spec: Manifest) -> dict[str, int]:
        name = spec.get("priorityClassName") or ""
        if spec.get("priority") is not None or (not name and name not in classes):
            return {}
        if name not in classes:
            problem = f"there is no PriorityClass {name!r} among the manifests, so no API server would accept the pods"
            field = ".".join((*path, "priorityClassName"))
            raise ManifestError(kind=str(kind), key=manifest_key(manifest), field=field, problem=problem)
        return {"priority": classes[name]}

    return _changed(manifest, path, complete)


def _changed(manifest: Manifest, path: tuple[str, ...], change: Callable[[Manifest], Manifest]) -> Manifest:
    if not path:
        return change(manifest)
    inner = manifest.get(path[0])
    return {**manifest, path[0]: _changed(inner, path[1:], change)} if isinstance(inner, Mapping) else manifest


def _with_requests(containers: Any) -> Any:
    if not isinstance(containers, list | tuple):
        return containers
    return [_with_own_requests(each) if isinstance(each, Mapping) else each for each in containers]


def _with_own_requests(container: Manifest) -> Manifest:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, Mapping) else None
    requests = (resources.get("requests") or {}) if isinstance(resources, Mapping) else None
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping):
        return container
    return {**container, "resources": {**(resources or {}), "requests": {**limits, **requests}}}


def _wrong_class(manifest: Manifest) -> ManifestError | None:
    value = manifest.get("value")
    if manifest.get("kind") != "PriorityClass" or (type(value) is int and abs(value) < _PRIORITIES):
        return None
    problem = f"expected a whole number of 32 bits, got {value!r}"
    return ManifestError(kind="PriorityClass", key=manifest_key(manifest), field="value", problem=problem)


def _priority_classes(manifests: Iterable[Manifest]) -> dict[str, int]:
    """By name; the default one by "" as well."""
    found = dict(_SYSTEM_CLASSES)
    for each in manifests:
        if each.get("kind") == "PriorityClass" and _wrong_class(each) is None:
            found[manifest_key(each)] = each["value"]
            if each.get("globalDefault") is True:
                found[""] = each["value"]
    return found


# ---- workloads ----


def _is_served(manifest: Manifest) -> bool:
    metadata = manifest.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


def _is_to_be_made(manifest: Manifest) -> bool:
    """Whether no controller has made its pods yet. Pods of a served workload are objects of their own."""
    metadata = manifest.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return str(manifest.get("kind")) in WORKLOADS and not _is_served(manifest) and not owners


def _add_workload(collector: Collector, manifest: Manifest, *, strict: bool) -> None:
    kind = str(manifest["kind"])
    made = workload_from_manifest(manifest, count=1 if kind == "DaemonSet" else None, strict=strict)
    for each in made.objects:
        add_object(collector, each, strict=False)  # checked with the workload
    pods = made.pods
    if kind == "DaemonSet":
        daemon = daemon_of(made.pods[0])
        collector.add_daemon(daemon)
        pods = tuple(pinned(daemon, node) for node in collector.nodes.values() if wants(daemon, node))
    for pod in pods:
        named = pod if pod.key not in collector.pods else replace_value(pod, name=f"{pod.name}-{kind.lower()}")
        collector.pods[named.key] = named
