"""Builds a snapshot from API objects: from mappings, or from pages (the JSON bodies of API lists), which are decoded
and released one by one.

Each page of pods is converted as soon as it is read, and equal specs and label sets become one object, so a large
cluster needs little memory. An object that cannot be read is left out and reported with its name and the field.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

import msgspec

from scheduler_core.arguments import expect_flags
from scheduler_core.model.manifests import from_manifest as read
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.object_reader import GROUPS, ObjectReader, group_of
from scheduler_core.model.manifests.strict.checks import WORKLOADS, WrongValueError, check_fields
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_ALIKE: Final = 0.85  # Deploymet and Deployment, but not PodTemplate and Pod


class Collector:
    """Collects objects of all kinds, and builds a snapshot from them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.problems: list[ManifestError] = []
        self._others: dict[str, list[Any]] = {}
        self._reader = ObjectReader()

    def knows(self, kind: str, api_version: str) -> bool:
        """Whether scheduling reads this kind. `api_version` (such as `apps/v1`) distinguishes kinds of the same
        name."""
        return self._reader.knows(kind, api_version)

    def add(self, kind: str, manifest: Mapping[str, Any]) -> None:
        """Adds one object, passed as a mapping."""
        self._keep(kind, self._reader.read(kind, manifest))

    def add_daemon(self, pod: Pod) -> None:
        """A pod of a DaemonSet that no API server has seen, for the nodes that are still to come."""
        self._others.setdefault("DaemonSet", []).append(pod)

    def has(self, kind: str, manifest: Mapping[str, Any]) -> bool:
        """Whether there is a Pod or a Node of this name already."""
        metadata = manifest.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
        return f"{namespace}/{name}" in self.pods if kind == "Pod" else kind == "Node" and name in self.nodes

    def add_page(self, kind: str, page: bytes) -> None:
        for value in self._reader.page(kind, page):
            self._keep(kind, value)

    def read_page(self, kind: str, page: bytes) -> Iterable[Any]:
        """The items of one page as wire structures, which have only the fields that scheduling reads. Unreadable
        items are reported and left out."""
        for written in self._reader.wire_items(kind, page):
            if isinstance(written, ManifestError):
                self.problems.append(written)
            else:
                yield written

    def _keep(self, kind: str, value: Any) -> None:
        if isinstance(value, ManifestError):
            self.problems.append(value)
        elif isinstance(value, Pod):
            self.pods[value.key] = value
        elif isinstance(value, Node):
            self.nodes[value.name] = value
        else:
            self._others.setdefault(kind, []).append(value)

    def snapshot(self) -> Snapshot:
        """All objects so far. Of two with the same name, the later one counts."""
        return Snapshot.of(
            tuple(self.nodes.values()), self.pods.values(), ClusterObjects.of(self._others), tuple(self.problems)
        )


class _PageHead(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disables Python's cyclic garbage collector: it would double the time of loading a cluster and free nothing,
    because loading creates no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_objects(objects: Iterable[Mapping[str, Any]], *, strict: bool = True) -> Snapshot:
    """Returns a snapshot of API objects. Each needs a `kind`; if it ends in List, the items are loaded.

    Ignores kinds that scheduling does not read. An object that cannot be read, or, if `strict`, has a field that no
    supported release has, is left out and listed in the snapshot's `problems` with its name and the field. If `strict`,
    a value that no API server accepts, and a second Pod or Node of one name, is listed too, but counts. Raises
    TypeError for a single object.
    """
    expect_flags(strict=strict)
    if isinstance(objects, Mapping):
        raise TypeError(f"load_objects takes several objects, got one {objects.get('kind', 'mapping')}: pass [it]")
    if isinstance(objects, str | bytes):
        raise TypeError("load_objects takes mappings, got a text: parse it, or pass [it] as bytes to load_pages")
    if not isinstance(objects, Iterable):
        raise TypeError(f"load_objects takes several mappings, got a {type(objects).__name__}: pass [the objects]")
    collector = Collector()
    with _without_collector():
        for manifest in objects:
            add_object(collector, manifest, strict=strict)
    return collector.snapshot()


def add_object(collector: Collector, manifest: Mapping[str, Any], *, strict: bool, by_people: bool = False) -> None:
    """`by_people`: no API server has seen the manifest, so it is left out if a value of it is wrong."""
    if not isinstance(manifest, Mapping):
        _refuse(collector, manifest, "", f"expected a mapping, got a {type(manifest).__name__}")
        return
    kind, api_version = manifest.get("kind"), manifest.get("apiVersion") or ""
    if not isinstance(kind, str) or not isinstance(api_version, str):
        _refuse(collector, manifest, "kind", "an object needs a kind and an apiVersion")
    elif kind == "List" or (kind.endswith("List") and collector.knows(kind.removesuffix("List"), api_version)):
        _add_items(collector, manifest, {"kind": kind.removesuffix("List"), "apiVersion": api_version}, strict=strict)
    elif collector.knows(kind, api_version):
        try:
            if strict:
                _check(collector, kind, manifest, by_people=by_people)
        except ManifestError as mistake:
            collector.problems.append(mistake)
        else:
            if strict and collector.has(kind, manifest):
                _refuse(collector, manifest, "metadata.name", f"a second {kind} of this name; the last one counts")
            collector.add(kind, manifest)
    elif misspelt := _misspelt(kind, api_version):
        _refuse(collector, manifest, *misspelt)


@lru_cache(maxsize=256)  # a cluster has many objects of few kinds
def _misspelt(kind: str, api_version: str) -> tuple[str, str] | None:
    """The field that is wrong, and why, if scheduling reads no such kind only because of a spelling. Other APIs have
    kinds of any name."""
    if group_of(api_version) not in GROUPS.values():
        return None
    if kind in GROUPS:
        return "apiVersion", f"{api_version!r} has no {kind}: expected the group {GROUPS[kind] or 'v1'}"
    if kind in WORKLOADS:
        return None
    known = {each.casefold(): each for each in (*GROUPS, *WORKLOADS)}
    close = get_close_matches(kind.casefold(), known, n=1, cutoff=_ALIKE)
    return ("kind", f"{kind!r} is not a kind; did you mean {known[close[0]]}?") if close else None


def _check(collector: Collector, kind: str, manifest: Mapping[str, Any], *, by_people: bool) -> None:
    """Raises ManifestError for an object that must be left out. What an API server served is not, even if another one
    would not accept it today."""
    key = read.manifest_key(manifest)
    try:
        check_fields(kind, manifest, key)
    except WrongValueError as wrong:
        if by_people:
            raise
        check_fields(kind, manifest, key, values=False)
        problem = f"{wrong.problem}; the object counts as it is"
        collector.problems.append(WrongValueError(kind=kind, key=key, field=wrong.field, problem=problem))


def _add_items(collector: Collector, listed: Mapping[str, Any], head: Mapping[str, str], *, strict: bool) -> None:
    items = listed.get("items") or ()
    if not isinstance(items, list | tuple):
        _refuse(collector, listed, "items", f"expected a list of objects, got a {type(items).__name__}")
        return
    for item in items:
        add_object(collector, {**head, **item} if isinstance(item, Mapping) else item, strict=strict)


def _refuse(collector: Collector, manifest: object, field: str, problem: str) -> None:
    key = read.manifest_key(manifest)
    collector.problems.append(ManifestError(kind="object", key=key, field=field, problem=problem))


# An API server writes kind and apiVersion first. Only a rewritten page must be decoded to find its kind.
_HEAD: Final = re.compile(rb'\s*\{\s*"kind"\s*:\s*"(\w+)"\s*,\s*"apiVersion"\s*:\s*"([^"]*)"')


def _what_is_in(page: bytes) -> tuple[str, str]:
    match = _HEAD.match(page)
    head = _PageHead(match[1].decode(), match[2].decode()) if match else msgspec.json.decode(page, type=_PageHead)
    kind = head.kind.removesuffix("List")
    if not kind:
        raise ValueError("a page without `kind` cannot be read: expected an API list such as a PodList")
    return kind, head.api_version


class KnownPage(Value):
    """A page of a kind that scheduling reads. `items` are wire structures, with only the fields that scheduling
    reads."""

    kind: str
    api_version: str
    items: tuple[wire.Wire, ...]


def read_known_page(page: bytes) -> KnownPage | None:
    """The page with only the fields that scheduling reads, without objects that cannot be read; None if scheduling
    does not read the kind."""
    kind, api_version = _what_is_in(page)
    collector = Collector()
    if not collector.knows(kind, api_version):
        return None
    return KnownPage(kind, api_version, tuple(collector.read_page(kind, page)))


class PageReader:
    """Takes pages one by one, in any order, and builds the snapshot at the end.

    With `reports_unknown`, the snapshot's problems list the kinds that scheduling does not read; otherwise they are
    ignored.
    """

    def __init__(self, *, reports_unknown: bool = False) -> None:
        self._collector = Collector()
        expect_flags(reports_unknown=reports_unknown)
        self._reports_unknown = reports_unknown
        self._unknown: set[tuple[str, str]] = set()

    def add(self, page: bytes) -> None:
        """Raises ValueError for invalid JSON, for nesting that is too deep, and for a missing kind."""
        try:
            self._add(page)
        except RecursionError:
            raise ValueError("the page is nested too deeply") from None

    def _add(self, page: bytes) -> None:
        if not isinstance(page, bytes | bytearray | memoryview):
            raise TypeError(f"a page is a {type(page).__name__}, expected the body of an API list as bytes")
        with _without_collector():
            kind, api_version = _what_is_in(page)
            if self._collector.knows(kind, api_version):
                self._collector.add_page(kind, page)
            elif self._reports_unknown and (kind, api_version) not in self._unknown:
                self._unknown.add((kind, api_version))
                self._collector.problems.append(
                    ManifestError(
                        kind=kind,
                        key="(all objects)",
                        field="apiVersion",
                        problem=f"{api_version} {kind} is not known to this release",
                    )
                )

    def snapshot(self) -> Snapshot:
        with _without_collector():
            return self._collector.snapshot()


def load_pages(pages: Iterable[bytes], *, reports_unknown: bool = False) -> Snapshot:
    """Returns a snapshot of raw API list bodies (`{"kind": "PodList", "items": […]}`), in any order.

    Releases each decoded body before it decodes the next one. Raises ValueError for a page with invalid JSON or without
    a kind.
    """
    if isinstance(pages, str | bytes) or not isinstance(pages, Iterable):
        raise TypeError(
            f"load_pages takes several bodies of API lists as bytes, got a {type(pages).__name__}: pass [it]"
        )
    reader = PageReader(reports_unknown=reports_unknown)
    for page in pages:
        reader.add(page)
    return reader.snapshot()
