"""Pages (JSON bodies of API lists) of pods, and pods of events. The JSON of most pods repeats that of a few templates
word for word, so equal text is decoded once.

The specs of a template's pods differ in `nodeName`. Their other text is compared without decoding, which costs a
fraction. Each running pod has a status of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar
from weakref import ref

import msgspec

from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import FieldError, ManifestError, nameless
from scheduler_core.model.manifests.from_manifest import PodReader, SharedParts, pod_spec
from scheduler_core.model.pod import Container, Pod, PodSpec
from scheduler_core.model.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT
from scheduler_core.model.requests import CURRENT_RULES, incoming_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler_core.values import replace_value

# Bound the kept texts, so that pods without a common text do not fill the memory: their number, and their bytes.
_MOST_TEXTS: Final = 4096
_MOST_BYTES: Final = 8 << 20
# What pods say of their places (`_RULES`), and what else they have beyond `_ORDINARY` bytes, takes up to fifteen times
# its JSON. A namespace of 2,000 workloads with 1 KiB each is within both limits.
MOST_OF_NAMESPACE: Final = 2 << 20
MOST_OF_ALL: Final = 16 << 20
_RULES: Final = ("affinity", "topology_spread_constraints", "tolerations", "node_selector")
_ORDINARY: Final = 4096

_NULL: Final = msgspec.Raw(b"null")

_NO_RULES: Final = msgspec.json.encode([None] * len(_RULES))

_Parts = tuple[wire.Pairs, PodSpec]
Written = TypeVar("Written")


class _MetaInPage(wire.WireIdentity, frozen=True):
    labels: msgspec.Raw = _NULL
    owner_references: msgspec.Raw = _NULL


class _PodInPage(wire.Wire, frozen=True):
    metadata: _MetaInPage = _MetaInPage()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: wire.WirePodStatus | None = None


class _PodPage(msgspec.Struct, gc=False):
    items: tuple[_PodInPage, ...] | None = None


class _Texts(Generic[Written]):
    """Decoded structures by their JSON text."""

    def __init__(self, shape: Any) -> None:
        self._decoder: msgspec.json.Decoder[Written] = msgspec.json.Decoder(shape)
        self._known: dict[object, Written] = {}
        self._bytes = 0

    def read(self, text: bytes) -> Written:
        if text in self._known:
            return self._known[text]
        return self._keep(text, self._decoder.decode(text), len(text))

    def _keep(self, key: object, written: Written, size: int) -> Written:
        if len(self._known) >= _MOST_TEXTS or self._bytes + size > _MOST_BYTES:
            self._known.clear()
            self._bytes = 0
        self._known[key] = written
        self._bytes += size
        return written


class _TextsButFor(_Texts[Written]):
    """Texts that differ only in the value of one field, such as `nodeName`, have one entry. `own_of` reads this value
    from the decoded text."""

    def __init__(self, field: bytes, shape: Any, own_of: Callable[[Written], str | None]) -> None:
        super().__init__(shape)
        self._opening = b'"' + field + b'":"'
        self._own_of = own_of

    def read_both(self, text: bytes) -> tuple[Written, str | None]:
        """The structure, and this text's own value of the field. The structure is shared and may have the field's value
        of another text: use the returned one."""
        at = text.find(self._opening)
        start = at + len(self._opening)
        end = text.find(b'"', start)
        own = text[start:end]
        if at < 0 or b"\\" in own or text.find(self._opening, end) >= 0:  # no candidate for the field, or several
            written = self.read(text)
            return written, self._own_of(written)
        key = (start, text[:start] + text[end:])
        if key in self._known:
            return self._known[key], own.decode()
        written = self._decoder.decode(text)
        if self._own_of(written) == own.decode():
            self._keep(key, written, len(text))
        return written, self._own_of(written)


class WatchedMeta(wire.WireMeta, frozen=True):
    resource_version: str = ""


class WatchedPod(wire.Wire, frozen=True):
    """The pod of a watch's event."""

    kind: str = ""
    api_version: str = ""
    metadata: WatchedMeta = WatchedMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: wire.WirePodStatus | None = None


class RepeatedPods:
    """Remembers the texts of all pods, even deleted ones, so create a new object whenever the whole cluster is read."""

    def __init__(self, reader: PodReader) -> None:
        self._reader = reader
        self._pages = msgspec.json.Decoder(_PodPage)
        self._labels: _Texts[wire.Pairs | None] = _Texts(wire.Pairs | None)
        self._owners: _Texts[tuple[wire.WireOwner, ...] | None] = _Texts(tuple[wire.WireOwner, ...] | None)
        self._specs: _TextsButFor[wire.WirePodSpec] = _TextsButFor(
            b"nodeName", wire.WirePodSpec, lambda spec: spec.node_name
        )
        # The keys are the ids of structures. The values keep the structures, so that no other object gets their ids.
        self._parts: dict[tuple[object, ...], tuple[SharedParts, object]] = {}
        self._parts_bytes = 0
        self._shared: dict[tuple[int, str], tuple[ref[PodSpec], wire.WirePodSpec]] = {}
        self._share = _Share()

    def pods(self, page: bytes) -> list[Pod | ManifestError]:
        """A pod with an unreadable amount or time becomes a ManifestError. Raises msgspec.ValidationError if an item is
        not a valid pod; the caller must then read the page pod by pod. Pods beyond their namespace's share of the
        memory have a spec with `is_left_out`."""
        return [self._pod(written) for written in self._pages.decode(page).items or ()]

    def _pod(self, written: _PodInPage) -> Pod | ManifestError:
        meta = written.metadata
        if not meta.name:
            return nameless("Pod")
        labels = self._labels.read(bytes(meta.labels))
        owners = self._owners.read(bytes(meta.owner_references))
        spec, node_name = self._specs.read_both(bytes(written.spec))
        try:
            parts = self._parts_of(written, labels, owners, spec)
            return self._reader.assembled(meta, parts, spec, written.status, node_name=node_name or "")
        except FieldError as trouble:
            return ManifestError(kind="Pod", key=meta.key, field=trouble.field, problem=trouble.problem)

    def watched(self, written: WatchedPod) -> Pod:
        """Raises FieldError for an amount or time that cannot be read, msgspec.ValidationError for a spec."""
        meta, reader = written.metadata, self._reader
        spec, node_name = self._specs.read_both(bytes(written.spec))
        parts = SharedParts(
            labels=reader.shared_labels(meta.labels),
            owner=reader.controller(meta.owner_references),
            spec=self._shared_spec(spec, meta.namespace or "default"),
        )
        return reader.assembled(meta, parts, spec, written.status, node_name=node_name or "")

    def _shared_spec(self, written: wire.WirePodSpec, namespace: str) -> PodSpec:
        """As the reader's; without looking at a spec that was seen before."""
        key = (id(written), namespace)
        known = self._shared.get(key)
        spec = None if known is None else known[0]()
        if spec is None:
            spec = self._reader.shared_spec(written, namespace)
            if len(self._shared) >= _MOST_TEXTS:
                self._shared.clear()
            self._shared[key] = (ref(spec), written)  # so that no other object gets its id
        return spec

    def _parts_of(
        self,
        written: _PodInPage,
        labels: wire.Pairs | None,
        owners: tuple[wire.WireOwner, ...] | None,
        spec: wire.WirePodSpec,
    ) -> SharedParts:
        """What `_Share` decides of a template stays so: an admitted text stays admitted, and room only shrinks."""
        meta = written.metadata
        namespace = meta.namespace or "default"
        key = (namespace, id(labels), id(owners), id(spec))
        known = self._parts.get(key)
        if known is None:
            size = sum(map(len, map(bytes, (meta.labels, meta.owner_references, written.spec))))
            if len(self._parts) >= _MOST_TEXTS or self._parts_bytes + size > _MOST_BYTES:
                self._parts.clear()
                self._parts_bytes = 0
            self._parts_bytes += size
            kept_labels, kept_spec = self._share.parts(self._reader, namespace, labels, spec)
            parts = SharedParts(labels=kept_labels, owner=self._reader.controller(owners), spec=kept_spec)
            known = self._parts[key] = (parts, (labels, owners, spec))
        return known[0]


class _Share:
    """Limits what the pods of a namespace, and all pods, may write about themselves. A tenant who writes more than that
    loses the words of further pods, not the forecast: the pods are there, with their requests."""

    def __init__(self) -> None:
        self._seen: dict[str, set[int]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0

    def parts(self, reader: PodReader, namespace: str, labels: wire.Pairs | None, spec: wire.WirePodSpec) -> _Parts:
        """Equal rules count once."""
        rules = msgspec.json.encode([getattr(spec, name) for name in _RULES])
        rest = msgspec.json.encode([labels, msgspec.structs.replace(spec, **dict.fromkeys(_RULES))])
        is_large = len(rest) > _ORDINARY
        if self._has_room(namespace, rules + rest if is_large else rules):
            return reader.shared_labels(labels), reader.shared_spec(spec, namespace)
        return reader.shared_labels(None if is_large else labels), _left_out(spec, namespace, is_large=is_large)

    def _has_room(self, namespace: str, text: bytes) -> bool:
        seen = self._seen.setdefault(namespace, set())
        if text == _NO_RULES or (number := hash(text)) in seen:
            return True
        used = self._bytes.get(namespace, 0) + len(text)
        if used > MOST_OF_NAMESPACE or self._total + len(text) > MOST_OF_ALL:
            return False
        seen.add(number)
        self._bytes[namespace] = used
        self._total += len(text)
        return True


def _left_out(written: wire.WirePodSpec, namespace: str, *, is_large: bool) -> PodSpec:
    """The spec without rules; a large one also without ports and volumes, and with one container that has the pod's
    requests for cpu, memory and ephemeral storage."""
    spec = pod_spec(msgspec.structs.replace(written, **dict.fromkeys(_RULES)), namespace)
    if is_large:
        wanted = incoming_requests(spec, CURRENT_RULES)
        spec = PodSpec(
            containers=(
                Container(
                    name="all",
                    requests={
                        CPU: wanted.cpu * NANOS_PER_MILLI,
                        MEMORY: wanted.memory * NANOS_PER_UNIT,
                        EPHEMERAL_STORAGE: wanted.ephemeral_storage * NANOS_PER_UNIT,
                    },
                ),
            ),
            scheduler_name=spec.scheduler_name,
            priority=spec.priority,
            preemption_policy=spec.preemption_policy,
        )
    return replace_value(spec, is_left_out=True)
