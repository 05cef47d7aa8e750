"""API objects to a snapshot: from mappings, or from raw list pages that are decoded one by one and let go of.

A page of pods becomes pods at once, and equal specs and label sets become one object, so a large cluster fits
into little memory. An object that cannot be read costs itself only: it is left out and reported with its name
and the field."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from scheduler_core.model.manifests import from_manifest as read
from scheduler_core.model.manifests import job_from_manifest, wire, wire_storage
from scheduler_core.model.manifests import storage_from_manifest as storage
from scheduler_core.model.manifests.error import FieldError, ManifestError
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.selecting_owner import SelectingOwner
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_GROUPS: Final = {
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "ReplicationController": "",
    "Service": "",
    "Pod": "",
    "Node": "",
    "Namespace": "",
    "Job": "batch",
}


_CONTROLLERS: Final = ("ReplicationController", "ReplicaSet", "StatefulSet")


class Collector:
    """Takes objects kind by kind and makes the snapshot in the end."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.problems: list[ManifestError] = []
        self._others: dict[str, list[Any]] = {}
        self._pod_reader = read.PodReader()
        self._kinds = _kinds(self._pod_reader)

    def knows(self, kind: str, api_version: str) -> bool:
        """Whether scheduling reads this kind of this API group."""
        if kind not in self._kinds:
            return False
        group = api_version.partition("/")[0] if "/" in api_version else ""
        return not api_version or kind not in _GROUPS or _GROUPS[kind] == group

    def add(self, kind: str, manifest: Mapping[str, Any]) -> None:
        """One object as a mapping."""
        shape = self._kinds[kind]
        try:
            written = msgspec.convert(manifest, shape.wire)
        except msgspec.ValidationError as trouble:
            self._report(kind, read.manifest_key(manifest), trouble)
        else:
            self._keep(kind, written)

    def add_page(self, kind: str, page: bytes) -> None:
        """One list body of a kind."""
        for written in self.read_page(kind, page):
            self._keep(kind, written)

    def read_page(self, kind: str, page: bytes) -> Iterable[Any]:
        """The items of a list body as wire structures; those that cannot be read are reported and left out."""
        try:
            return self._kinds[kind].pages.decode(page).items or ()
        except msgspec.ValidationError:
            return self._read_one_by_one(kind, page)

    def _read_one_by_one(self, kind: str, page: bytes) -> Iterator[Any]:
        decoder = msgspec.json.Decoder(self._kinds[kind].wire)
        for raw in msgspec.json.decode(page, type=_RawPage).items or ():
            try:
                yield decoder.decode(raw)
            except msgspec.ValidationError as trouble:
                self._report(kind, read.manifest_key(msgspec.json.decode(raw)), trouble)

    def _report(self, kind: str, key: str, trouble: msgspec.ValidationError) -> None:
        text, _, path = str(trouble).partition(" - at `$")
        self.problems.append(ManifestError(kind=kind, key=key, field=path.lstrip(".").rstrip("`"), problem=text))

    def _keep(self, kind: str, written: Any) -> None:
        if not written.metadata.name:
            self.problems.append(
                ManifestError(kind=kind, key="without a name", field="metadata.name", problem="an object needs a name")
            )
            return
        try:
            value = self._kinds[kind].build(written)
        except FieldError as trouble:
            meta = written.metadata
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            self.problems.append(ManifestError(kind=kind, key=key, field=trouble.field, problem=trouble.problem))
            return
        if isinstance(value, Pod):
            self.pods[value.key] = value
        elif isinstance(value, Node):
            self.nodes[value.name] = value
        else:
            self._others.setdefault(kind, []).append(value)

    def snapshot(self) -> Snapshot:
        """Everything taken so far. Of two objects of one name the later counts."""
        return Snapshot.of(tuple(self.nodes.values()), self.pods.values(), self._objects(), tuple(self.problems))

    def _objects(self) -> ClusterObjects:
        def by_name(kind: str) -> dict[str, Any]:
            return {value.name: value for value in self._others.get(kind, ())}

        def by_key(kind: str) -> dict[str, Any]:
            return {value.key: value for value in self._others.get(kind, ())}

        owners: dict[str, list[SelectingOwner]] = {}
        for kind in ("Service", *_CONTROLLERS):
            for owner in self._others.get(kind, ()):
                owners.setdefault(owner.namespace, []).append(owner)
        return ClusterObjects(
            namespaces=dict(self._others.get("Namespace", ())),
            owners={namespace: tuple(several) for namespace, several in owners.items()},
            budgets=tuple(self._others.get("PodDisruptionBudget", ())),
            claims=by_key("PersistentVolumeClaim"),
            volumes=by_name("PersistentVolume"),
            storage_classes=by_name("StorageClass"),
            csi_nodes=by_name("CSINode"),
            csi_drivers=by_name("CSIDriver"),
            capacities=tuple(self._others.get("CSIStorageCapacity", ())),
            attachments=tuple(self._others.get("VolumeAttachment", ())),
            resource_claims=by_key("ResourceClaim"),
            device_classes=by_name("DeviceClass"),
            jobs=(jobs := by_key("Job")),
            bound={
                (kind, each.namespace, each.name): each.bound_to
                for kind, several in (
                    *((kind, self._others.get(kind, ())) for kind in _CONTROLLERS),
                    ("Job", jobs.values()),
                )
                for each in several
                if each.bound_to
            },
        )


class _RawPage(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _PageHead(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


@dataclass(slots=True)
class _Kind:
    wire: type[wire.Wire]
    build: Callable[[Any], Any]
    pages: msgspec.json.Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        page = msgspec.defstruct(f"{self.wire.__name__}Page", [("items", tuple[self.wire, ...] | None, None)], gc=False)  # type: ignore[name-defined]
        self.pages = msgspec.json.Decoder(page)


def _kinds(pods: read.PodReader) -> Mapping[str, _Kind]:
    return {
        "Pod": _Kind(wire.WirePod, pods.pod),
        "Node": _Kind(wire.WireNode, read.node),
        "Namespace": _Kind(wire.WireNamespace, lambda w: (w.metadata.name, w.metadata.labels or {})),
        "Service": _Kind(wire.WireLabelSelecting, lambda w: read.label_selecting("Service", w)),
        "ReplicationController": _Kind(
            wire.WireLabelSelecting, lambda w: read.label_selecting("ReplicationController", w)
        ),
        "ReplicaSet": _Kind(wire.WireSelectingController, lambda w: read.selecting_controller("ReplicaSet", w)),
        "StatefulSet": _Kind(wire.WireSelectingController, lambda w: read.selecting_controller("StatefulSet", w)),
        "Job": _Kind(wire.WireJob, job_from_manifest.job),
        "PodDisruptionBudget": _Kind(wire.WireBudget, read.budget),
        "PersistentVolumeClaim": _Kind(wire_storage.WireClaim, storage.claim),
        "PersistentVolume": _Kind(wire_storage.WirePersistentVolume, storage.persistent_volume),
        "StorageClass": _Kind(wire_storage.WireStorageClass, storage.storage_class),
        "CSINode": _Kind(wire_storage.WireCsiNode, storage.csi_node),
        "CSIDriver": _Kind(wire_storage.WireCsiDriver, storage.csi_driver),
        "CSIStorageCapacity": _Kind(wire_storage.WireCsiStorageCapacity, storage.csi_storage_capacity),
        "VolumeAttachment": _Kind(wire_storage.WireAttachment, storage.attachment),
        "ResourceClaim": _Kind(wire_storage.WireResourceClaim, storage.resource_claim),
        "DeviceClass": _Kind(wire_storage.WireDeviceClass, storage.device_class),
    }


@contextmanager
def _without_collector() -> Iterator[None]:
    """The cyclic garbage collector costs twice the time of a bulk load, which makes no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_objects(objects: Iterable[Mapping[str, Any]]) -> Snapshot:
    """A snapshot of API objects, each with its `kind`; a mapping whose kind ends in List is taken as its items.

    Kinds that scheduling does not read are passed over. An object that cannot be read is left out and stands in the
    snapshot's `problems`, with its name and the field.
    """
    collector = Collector()
    with _without_collector():
        for manifest in objects:
            _add_object(collector, manifest)
    return collector.snapshot()


def _add_object(collector: Collector, manifest: Mapping[str, Any]) -> None:
    kind, api_version = manifest.get("kind"), manifest.get("apiVersion") or ""
    if not isinstance(kind, str) or not isinstance(api_version, str):
        collector.problems.append(
            ManifestError(
                kind="object",
                key=read.manifest_key(manifest),
                field="kind",
                problem="an object needs a kind and an apiVersion",
            )
        )
    elif kind == "List" or (kind.endswith("List") and collector.knows(kind.removesuffix("List"), api_version)):
        for item in manifest.get("items") or ():
            _add_object(collector, {"kind": kind.removesuffix("List"), "apiVersion": api_version, **item})
    elif collector.knows(kind, api_version):
        collector.add(kind, manifest)


# An API server writes these two first; only a page that somebody rewrote has to be read to its end to learn what it is.
_HEAD: Final = re.compile(rb'\s*\{\s*"kind"\s*:\s*"(\w+)"\s*,\s*"apiVersion"\s*:\s*"([^"]*)"')


def _what_is_in(page: bytes) -> tuple[str, str]:
    match = _HEAD.match(page)
    head = _PageHead(match[1].decode(), match[2].decode()) if match else msgspec.json.decode(page, type=_PageHead)
    kind = head.kind.removesuffix("List")
    if not kind:
        raise ValueError("a page without `kind` cannot be read: expected an API list such as a PodList")
    return kind, head.api_version


class KnownPage(Value):
    """A list page of a kind that scheduling reads, narrowed to the fields that are read; `items` are its wire
    structures."""

    kind: str
    api_version: str
    items: tuple[wire.Wire, ...]


def read_known_page(page: bytes) -> KnownPage | None:
    """The page narrowed; None for a kind that scheduling does not read. Objects that cannot be read are left out."""
    kind, api_version = _what_is_in(page)
    collector = Collector()
    if not collector.knows(kind, api_version):
        return None
    return KnownPage(kind, api_version, tuple(collector.read_page(kind, page)))


class PageReader:
    """Takes raw list bodies one by one, in any order, and makes the snapshot in the end.

    With `tells_unknown` a kind that scheduling does not read stands in the snapshot's problems; without, it is
    passed over."""

    def __init__(self, *, tells_unknown: bool = False) -> None:
        self._collector = Collector()
        self._tells_unknown = tells_unknown
        self._unknown: set[tuple[str, str]] = set()

    def add(self, page: bytes) -> None:
        """One body. ValueError when it is no JSON, is nested too deeply to be read, or names no kind."""
        try:
            self._add(page)
        except RecursionError:
            raise ValueError("a page that is nested so deeply cannot be read") from None

    def _add(self, page: bytes) -> None:
        with _without_collector():
            kind, api_version = _what_is_in(page)
            if self._collector.knows(kind, api_version):
                self._collector.add_page(kind, page)
            elif self._tells_unknown and (kind, api_version) not in self._unknown:
                self._unknown.add((kind, api_version))
                self._collector.problems.append(
                    ManifestError(
                        kind=kind,
                        key="all of them",
                        field="apiVersion",
                        problem=f"{api_version} {kind} is not known to this release",
                    )
                )

    def snapshot(self) -> Snapshot:
        """Everything taken so far."""
        with _without_collector():
            return self._collector.snapshot()


def load_pages(pages: Iterable[bytes], *, tells_unknown: bool = False) -> Snapshot:
    """A snapshot of raw API list bodies (`{"kind": "PodList", "items": […]}`), in any order.

    Each is decoded and let go of before the next. Raises ValueError when a page is no JSON or names no kind.
    """
    reader = PageReader(tells_unknown=tells_unknown)
    for page in pages:
        reader.add(page)
    return reader.snapshot()
