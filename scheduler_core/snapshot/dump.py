"""Dumps: files with the fields of a cluster that scheduling reads, so that a decision can be replayed elsewhere.

Gzip over lines of JSON: a header, one page (the body of an API list) per line, and a last line with the number of
pages. What the model does not read is not written: no environment, commands, secrets or managed fields, and only the
annotations that scheduling reads. Names, labels, images and requests remain.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, BinaryIO, Final

import msgspec

from scheduler_core.arguments import checked, expect, expect_fields
from scheduler_core.model.manifests import wire
from scheduler_core.snapshot.loading import load_pages, read_known_page
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

VERSION: Final = 1
_MAGIC: Final = "careen-snapshot"
# A page of 500 objects is a few megabytes. A longer line is not from a dump and must not fill the reader's memory.
_LONGEST_LINE: Final = 64 * 2**20
_KEPT_ANNOTATIONS: Final = frozenset(
    {
        "batch.kubernetes.io/job-index-failure-count",
        "kubernetes.io/config.mirror",
        "volume.kubernetes.io/selected-node",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.beta.kubernetes.io/storage-class",
        "storage.alpha.kubernetes.io/migrated-plugins",
    }
)


class UnreadableDumpError(ValueError):
    """Not a complete dump of this version. The message says why. No part of the file is used."""


class Header(Value, kw_only=True):
    """The first line: the cluster's Kubernetes version, and when it was read (RFC 3339)."""

    kube_version: str
    taken_at: str

    def __post_init__(self) -> None:
        expect_fields(self)


class Dump(Value, kw_only=True):
    """What `read_dump` found in the file."""

    header: Header
    snapshot: Snapshot
    learnt: Any = None
    """What `careen shadow` learned about the scheduler's searches, as JSON (`learning/stored_estimate.py`)."""


class DumpWriter:
    """Writes a dump page by page. Call `finish` after the last page, and `close` even after an error. Without
    `finish`, the last line is missing and readers refuse the file as incomplete."""

    def __init__(self, header: Header, out: BinaryIO) -> None:
        expect("header", header, Header)
        _expect_file("out", out, "write")
        self._file = gzip.GzipFile(fileobj=out, mode="wb", mtime=0)
        self._file.write(
            _line(
                {"format": _MAGIC, "version": VERSION, "kubeVersion": header.kube_version, "takenAt": header.taken_at}
            )
        )
        self.pages = 0

    @checked
    def add(self, page: bytes) -> None:
        """Writes one list page, the body of an API answer. Ignores kinds that scheduling does not read. Raises
        ValueError if it is no API list."""
        known = read_known_page(page)
        if known is not None:
            self._file.write(_page_line(known.kind, known.api_version, known.items))
            self.pages += 1

    @checked
    def finish(self, learnt: Mapping[str, Any] | None = None) -> None:
        """Writes the last line, with `learnt` (what `careen shadow` learned about the scheduler's searches), and
        closes this writer, but not `out`."""
        self._file.write(_line({"end": self.pages, **({"learnt": learnt} if learnt else {})}))
        self.close()

    def close(self) -> None:
        """Writes what is still buffered. `out` stays open."""
        self._file.close()


def write_dump(header: Header, pages: Iterable[bytes], out: BinaryIO) -> int:
    """Returns the number of written pages. Raises ValueError for a page that is no API list."""
    with closing(DumpWriter(header, out)) as writer:
        for page in pages:
            writer.add(page)
        writer.finish()
    return writer.pages


def read_dump(source: BinaryIO) -> Dump:
    """Raises UnreadableDumpError if the file is not a complete dump of this version."""
    _expect_file("source", source, "read")
    lines = _lines(source)
    last: dict[str, Any] = {}
    try:
        header = _header(next(lines, b""))
        snapshot = load_pages(_pages(lines, last), reports_unknown=True)
    except (EOFError, zlib.error) as error:
        raise UnreadableDumpError(
            f"the dump is cut off or damaged: {error}; take it again with `careen snapshot`"
        ) from error
    except gzip.BadGzipFile as error:
        raise UnreadableDumpError(
            "this is not a gzip file; a dump is made with `careen snapshot > dump.json.gz`. Snapshot.from_manifests "
            "reads the output of `kubectl get … -o json` and other manifests"
        ) from error
    except UnreadableDumpError:
        raise
    except (ValueError, msgspec.DecodeError) as error:
        raise UnreadableDumpError(f"the dump cannot be read: {error}") from error
    return Dump(header=header, snapshot=snapshot, learnt=last.get("learnt"))


def _expect_file(name: str, given: object, method: str) -> None:
    if not hasattr(given, method):
        raise TypeError(f"{name} is a {type(given).__name__}, expected a file: pass one that is open in binary mode")


def _lines(source: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=source, mode="rb") as file:
        while line := file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise UnreadableDumpError("this is not a careen snapshot: it has a line of more than 64 MiB")
            yield line


def _header(line: bytes) -> Header:
    if not line:
        raise UnreadableDumpError("the dump is empty; take it again with `careen snapshot`")
    try:
        head = json.loads(line)
    except ValueError as error:
        raise UnreadableDumpError("this is not a careen snapshot: its first line is not JSON") from error
    if not isinstance(head, dict) or head.get("format") != _MAGIC:
        raise UnreadableDumpError("this is not a careen snapshot: its first line is not a header")
    if head.get("version") != VERSION:
        raise UnreadableDumpError(f"the dump has version {head.get('version')!r}; this release reads version {VERSION}")
    return Header(kube_version=str(head.get("kubeVersion", "")), taken_at=str(head.get("takenAt", "")))


def _pages(lines: Iterator[bytes], last: dict[str, Any]) -> Iterator[bytes]:
    """Yields the pages, and puts the content of the last line into `last`. Raises UnreadableDumpError if pages are
    missing."""
    for count, line in enumerate(lines):
        if line.startswith(b'{"end":'):
            last |= json.loads(line)
            if last["end"] != count:
                raise UnreadableDumpError(
                    "the number of pages in the dump differs from the number in its last line; "
                    "take the dump again with `careen snapshot`"
                )
            if next(lines, None) is not None:  # Reading to the end also checks gzip's checksum.
                raise UnreadableDumpError("the dump has data after its last line; take it again with `careen snapshot`")
            return
        yield line
    raise UnreadableDumpError("the dump is cut off: its last line is missing; take it again with `careen snapshot`")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _page_line(kind: str, api_version: str, items: Iterable[Any]) -> bytes:
    head = json.dumps({"kind": f"{kind}List", "apiVersion": api_version}, separators=(",", ":")).encode()
    body = msgspec.json.encode([_without_foreign_annotations(_without_bare_volumes(item)) for item in items])
    return head[:-1] + b',"items":' + body + b"}\n"


def _without_bare_volumes(item: Any) -> Any:
    """Drops volumes that scheduling does not read. Some have another name in each pod; without them, pods of one
    template have the same text."""
    if not isinstance(item, wire.WirePod) or not item.spec.volumes:
        return item
    kept = tuple(volume for volume in item.spec.volumes if volume != wire.WireVolume(volume.name))
    return msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, volumes=kept or None))


def _without_foreign_annotations(item: Any) -> Any:
    annotations = item.metadata.annotations
    if not annotations:
        return item
    kept = {key: value for key, value in annotations.items() if key in _KEPT_ANNOTATIONS}
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, annotations=kept or None))
