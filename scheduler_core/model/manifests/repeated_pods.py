"""Pages (JSON bodies of API lists) of pods. The JSON of most pods repeats that of a few templates word for word, so
equal text is decoded once.

Pods of a template differ in `nodeName` and `startTime`. Their other text is compared without decoding, which costs a
fraction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import FieldError, ManifestError
from scheduler_core.model.manifests.from_manifest import PodReader, SharedParts
from scheduler_core.model.pod import Pod

# Bounds the kept texts, so that pods without a common text do not fill the memory.
_MOST_TEXTS: Final = 4096

_NULL: Final = msgspec.Raw(b"null")

Written = TypeVar("Written")


class _MetaInPage(wire.WireIdentity, frozen=True):
    labels: msgspec.Raw = _NULL
    owner_references: msgspec.Raw = _NULL


class _PodInPage(wire.Wire, frozen=True):
    metadata: _MetaInPage = _MetaInPage()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = _NULL


class _PodPage(msgspec.Struct, gc=False):
    items: tuple[_PodInPage, ...] | None = None


class _Texts(Generic[Written]):
    """Decoded structures by their JSON text."""

    def __init__(self, shape: Any) -> None:
        self._decoder: msgspec.json.Decoder[Written] = msgspec.json.Decoder(shape)
        self._known: dict[object, Written] = {}

    def read(self, text: bytes) -> Written:
        if text in self._known:
            return self._known[text]
        return self._keep(text, self._decoder.decode(text))

    def _keep(self, key: object, written: Written) -> Written:
        if len(self._known) >= _MOST_TEXTS:
            self._known.clear()
        self._known[key] = written
        return written


class _TextsButFor(_Texts[Written]):
    """Texts that differ only in the value of one field, such as `nodeName`, have one entry. `own_of` reads this value
    from the decoded text."""

    def __init__(self, field: bytes, shape: Any, own_of: Callable[[Written], str | None]) -> None:
        super().__init__(shape)
        self._cut = re.compile(b'"' + field + rb'":"([^"\\]*)",?')
        self._own_of = own_of

    def read_both(self, text: bytes) -> tuple[Written, str | None]:
        """The structure, and this text's own value of the field. The structure is shared and may have the field's value
        of another text: use the returned one."""
        parts = self._cut.split(text, 2)
        if len(parts) != 3:  # without the field, or with several candidates for it
            written = self.read(text)
            return written, self._own_of(written)
        before, own, after = parts
        key = (len(before), before + after)
        if key in self._known:
            return self._known[key], own.decode()
        written = self._decoder.decode(text)
        if self._own_of(written) == own.decode():
            self._keep(key, written)
        return written, self._own_of(written)


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
        self._statuses: _TextsButFor[wire.WirePodStatus | None] = _TextsButFor(
            b"startTime", wire.WirePodStatus | None, lambda status: status.start_time if status else None
        )
        # The keys are the ids of structures. The values keep the structures, so that no other object gets their ids.
        self._parts: dict[tuple[object, ...], tuple[SharedParts, object]] = {}

    def pods(self, page: bytes) -> list[Pod | ManifestError]:
        """A pod with an unreadable amount or time becomes a ManifestError. Raises msgspec.ValidationError if an item is
        not a valid pod; the caller must then read the page pod by pod."""
        return [self._pod(written) for written in self._pages.decode(page).items or ()]

    def _pod(self, written: _PodInPage) -> Pod | ManifestError:
        meta = written.metadata
        if not meta.name:
            return ManifestError(
                kind="Pod", key="without a name", field="metadata.name", problem="an object needs a name"
            )
        labels = self._labels.read(bytes(meta.labels))
        owners = self._owners.read(bytes(meta.owner_references))
        spec, node_name = self._specs.read_both(bytes(written.spec))
        status, start_time = self._statuses.read_both(bytes(written.status))
        try:
            parts = self._parts_of(meta.namespace or "default", labels, owners, spec, status)
            return self._reader.assembled(meta, parts, node_name=node_name or "", start_time=start_time)
        except FieldError as trouble:
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            return ManifestError(kind="Pod", key=key, field=trouble.field, problem=trouble.problem)

    def _parts_of(
        self,
        namespace: str,
        labels: wire.Pairs | None,
        owners: tuple[wire.WireOwner, ...] | None,
        spec: wire.WirePodSpec,
        status: wire.WirePodStatus | None,
    ) -> SharedParts:
        key = (namespace, id(labels), id(owners), id(spec), id(status))
        known = self._parts.get(key)
        if known is None:
            if len(self._parts) >= _MOST_TEXTS:
                self._parts.clear()
            parts = SharedParts(
                labels=self._reader.shared_labels(labels),
                owner=self._reader.controller(owners),
                spec=self._reader.shared_spec(spec, namespace),
                status_fields=self._reader.status_fields(status, spec),
            )
            known = self._parts[key] = (parts, (labels, owners, spec, status))
        return known[0]
