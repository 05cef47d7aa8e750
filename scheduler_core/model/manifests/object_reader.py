"""API objects of every kind that scheduling reads: from mappings, raw JSON, and pages (JSON bodies of API lists).

An object that cannot be read becomes a ManifestError with its name and the field; all others are still converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from scheduler_core.model.manifests import from_manifest as read
from scheduler_core.model.manifests import job_from_manifest, wire, wire_storage
from scheduler_core.model.manifests import storage_from_manifest as storage
from scheduler_core.model.manifests.error import FieldError, ManifestError, nameless
from scheduler_core.model.manifests.repeated_pods import RepeatedPods, WatchedPod
from scheduler_core.model.manifests.strict.checks import invalid_text

_OF_GROUP: Final = {
    "": "Namespace Node PersistentVolume PersistentVolumeClaim Pod ReplicationController Service",
    "apps": "ReplicaSet StatefulSet",
    "batch": "Job",
    "policy": "PodDisruptionBudget",
    "resource.k8s.io": "DeviceClass ResourceClaim",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}
GROUPS: Final = {kind: group for group, kinds in _OF_GROUP.items() for kind in kinds.split()}
"""The API group of each kind that scheduling reads."""


def group_of(api_version: str) -> str:
    """ "apps" of "apps/v1"; "" of "v1"."""
    return api_version.partition("/")[0] if "/" in api_version else ""


class ObjectReader:
    """Equal specs of pods become one object, and so do equal label sets."""

    def __init__(self) -> None:
        self.pods = read.PodReader()
        self._repeated = RepeatedPods(self.pods)
        self._kinds = _kinds(self.pods)

    @property
    def kinds(self) -> Iterable[str]:
        """Every kind that scheduling reads."""
        return self._kinds.keys()

    def knows(self, kind: str, api_version: str) -> bool:
        """Whether scheduling reads this kind. `api_version` (such as `apps/v1`) distinguishes kinds of the same
        name."""
        if kind not in self._kinds:
            return False
        return not api_version or GROUPS[kind] == group_of(api_version)

    def read(self, kind: str, manifest: Mapping[str, Any]) -> Any:
        """From a mapping. A ManifestError if the object cannot be read."""
        try:
            return self.build(kind, msgspec.convert(manifest, self._kinds[kind].wire))
        except msgspec.ValidationError as trouble:
            return _problem(kind, read.manifest_key(manifest), trouble)
        except UnicodeError:
            return invalid_text(kind, manifest, read.manifest_key(manifest))

    def read_raw(self, kind: str, raw: bytes | msgspec.Raw) -> Any:
        """From JSON. A ManifestError if the object cannot be read. Raises msgspec.DecodeError for invalid JSON."""
        written = self._decoded(kind, raw)
        return written if isinstance(written, ManifestError) else self.build(kind, written)

    def watched_pod(self, written: WatchedPod) -> Any:
        """As `read_raw`, of an event's pod."""
        meta = written.metadata
        if not meta.name:
            return nameless("Pod")
        try:
            return self._repeated.watched(written)
        except FieldError as trouble:
            return ManifestError(kind="Pod", key=meta.key, field=trouble.field, problem=trouble.problem)
        except msgspec.ValidationError as trouble:
            return _problem("Pod", meta.key, trouble, within="spec")

    def wire_items(self, kind: str, page: bytes) -> Iterable[Any]:
        """The page's items as wire structures; one that cannot be read becomes a ManifestError."""
        try:
            return self._kinds[kind].pages.decode(page).items or ()
        except msgspec.ValidationError:
            return self._one_by_one(kind, page)

    def page(self, kind: str, page: bytes) -> Iterable[Any]:
        """The page's items as the model's values; one that cannot be read becomes a ManifestError."""
        if kind == "Pod":
            try:
                return self._repeated.pods(page)
            except msgspec.ValidationError:
                pass  # decoded again one by one, to find the pod and its field
        return (
            each if isinstance(each, ManifestError) else self.build(kind, each) for each in self.wire_items(kind, page)
        )

    def _one_by_one(self, kind: str, page: bytes) -> Iterator[Any]:
        for raw in msgspec.json.decode(page, type=RawPage).items or ():
            yield self._decoded(kind, raw)

    def _decoded(self, kind: str, raw: bytes | msgspec.Raw) -> Any:
        try:
            return self._kinds[kind].single.decode(raw)
        except msgspec.ValidationError as trouble:
            return _problem(kind, read.manifest_key(msgspec.json.decode(raw)), trouble)

    def build(self, kind: str, written: Any) -> Any:
        """A ManifestError if a field cannot be read."""
        if not written.metadata.name:
            return nameless(kind)
        try:
            return self._kinds[kind].build(written)
        except FieldError as trouble:
            return ManifestError(kind=kind, key=written.metadata.key, field=trouble.field, problem=trouble.problem)


class RawPage(msgspec.Struct):
    """The body of an API list whose items are not decoded yet."""

    items: list[msgspec.Raw] | None = None


def _problem(kind: str, key: str, trouble: msgspec.ValidationError, *, within: str = "") -> ManifestError:
    text, _, path = str(trouble).partition(" - at `$")
    return ManifestError(kind=kind, key=key, field=(within + path.rstrip("`")).lstrip("."), problem=text)


@dataclass(slots=True)
class _Kind:
    wire: type[wire.Wire]
    build: Callable[[Any], Any]
    pages: msgspec.json.Decoder[Any] = field(init=False)
    single: msgspec.json.Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        page = msgspec.defstruct(f"{self.wire.__name__}Page", [("items", tuple[self.wire, ...] | None, None)], gc=False)  # type: ignore[name-defined]
        self.pages = msgspec.json.Decoder(page)
        self.single = msgspec.json.Decoder(self.wire)


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
