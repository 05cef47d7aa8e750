"""Tests a dump: a cluster that is written to a file and read again. The file keeps exactly what scheduling reads, and
an invalid file is refused."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from scheduler_core.cycle import Scheduler
from scheduler_core.snapshot.dump import Header, UnreadableDumpError, read_dump, write_dump
from scheduler_core.snapshot.loading import load_objects, load_pages

HEADER = Header(kube_version="v1.36.3", taken_at="2026-01-01T00:00:00Z")
NODE = {
    "metadata": {"name": "n1", "uid": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
    "status": {"allocatable": {"cpu": "4", "pods": "9"}},
}
POD = {
    "metadata": {
        "name": "p",
        "namespace": "shop",
        "uid": "p",
        "labels": {"app": "web"},
        "managedFields": [{"manager": "tell-tale"}],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "tell-tale",
            "kubernetes.io/config.mirror": "x",
        },
    },
    "spec": {
        "nodeName": "n1",
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["tell-tale"],
                "args": ["tell-tale"],
                "env": [{"name": "PASSWORD", "value": "tell-tale"}],
                "resources": {"requests": {"cpu": "100m"}},
                "readinessProbe": {"exec": {"command": ["tell-tale"]}},
            }
        ],
    },
    "status": {"phase": "Running", "message": "tell-tale"},
}


def page(kind: str, *items: dict[str, Any], api_version: str = "v1") -> bytes:
    return json.dumps(
        {"kind": f"{kind}List", "apiVersion": api_version, "metadata": {"resourceVersion": "7"}, "items": list(items)}
    ).encode()


def dumped(*pages: bytes) -> bytes:
    out = io.BytesIO()
    write_dump(HEADER, pages, out)
    return out.getvalue()


def test_a_dump_keeps_what_scheduling_reads() -> None:
    dump = read_dump(io.BytesIO(dumped(page("Node", NODE), page("Pod", POD))))
    assert dump.header == HEADER
    pod = dump.snapshot.pod("shop/p")
    assert (pod.node_name, dict(pod.labels), pod.is_mirror) == ("n1", {"app": "web"}, True)


def test_a_dump_drops_fields_that_scheduling_does_not_read() -> None:
    text = gzip.decompress(
        dumped(
            page("Node", NODE),
            page("Pod", POD),
            page("Secret", {"metadata": {"name": "s"}, "data": {"k": "tell-tale"}}),
        )
    ).decode()
    assert "tell-tale" not in text
    assert "PASSWORD" not in text
    assert "Secret" not in text


def test_two_dumps_of_the_same_cluster_have_the_same_bytes() -> None:
    assert dumped(page("Node", NODE)) == dumped(page("Node", NODE))


_CASES = Path(__file__).parents[2] / "conformance" / "cases.jsonl.gz"


def _recorded(index: int) -> dict[str, Any]:
    with gzip.open(_CASES, "rt") as lines:
        case: dict[str, Any] = json.loads(next(line for number, line in enumerate(lines) if number == index))
    return case


@pytest.mark.parametrize("index", range(7, 400, 56))
def test_the_scheduler_makes_the_same_decisions_on_a_cluster_that_was_read_from_a_dump(index: int) -> None:
    case = _recorded(index)
    asked = set(case["pods"])
    pages, pods = [], []
    for manifest in case["objects"]:
        key = f"{manifest['metadata'].get('namespace', 'default')}/{manifest['metadata']['name']}"
        if manifest["kind"] == "Pod" and key in asked:
            pods.append(manifest)
        else:
            pages.append(page(manifest["kind"], manifest, api_version=manifest["apiVersion"]))
    scheduler = Scheduler()
    direct, replayed = load_pages(pages), read_dump(io.BytesIO(dumped(*pages))).snapshot
    assert pods
    for snapshot in (direct, replayed):
        assert not snapshot.problems
    for manifest in pods:
        pod = load_objects([manifest]).pending[0]
        one, other = scheduler.schedule(direct, pod), scheduler.schedule(replayed, pod)
        assert (one.best, one.sentence, dict(one.statuses)) == (other.best, other.sentence, dict(other.statuses))


WHOLE = dumped(page("Node", NODE), page("Pod", POD))
LINES = gzip.decompress(WHOLE).splitlines(keepends=True)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "the dump is empty", id="an empty file"),
        pytest.param(gzip.compress(b""), "the dump is empty", id="a compressed file without content"),
        pytest.param(b"apiVersion: v1\n", "not a gzip file", id="a file that is not compressed"),
        pytest.param(gzip.compress(b"hello\n"), "its first line is not JSON", id="compressed text that is not JSON"),
        pytest.param(
            gzip.compress(b'{"kind":"PodList"}\n'),
            "its first line is not a header",
            id="JSON without the header of a dump",
        ),
        pytest.param(
            gzip.compress(LINES[0].replace(b'"version":1', b'"version":9')),
            "the dump has version 9; this release reads version 1",
            id="a dump of another version",
        ),
        pytest.param(WHOLE[:-9], "cut off or damaged", id="a dump that is truncated within its compressed bytes"),
        pytest.param(
            gzip.compress(b"".join(LINES[:-1])), "its last line is missing", id="a dump without its last line"
        ),
        pytest.param(
            gzip.compress(b"".join([LINES[0], LINES[2], LINES[3]])),
            "the number of pages in the dump differs from the number in its last line",
            id="a dump that lacks a page",
        ),
        pytest.param(gzip.compress(LINES[0] + b"{]\n"), "cannot be read", id="a dump with a page of invalid JSON"),
    ],
)
def test_an_invalid_dump_is_refused_with_a_clear_message(content: bytes, sentence: str) -> None:
    with pytest.raises(UnreadableDumpError, match=sentence):
        read_dump(io.BytesIO(content))


def test_an_unknown_kind_in_a_dump_is_reported_once() -> None:
    """A dump contains only the kinds of objects that the careen release of its writer reads for scheduling. If the
    careen release of the reader does not know such a kind, the reader's result may be wrong. So the reader reports the
    kind."""
    unknown = b'{"kind":"PodGroupList","apiVersion":"scheduling.k8s.io/v1","items":[{"metadata":{"name":"g"}}]}\n'
    content = gzip.compress(b"".join([*LINES[:-1], unknown, unknown, b'{"end":4}\n']))
    assert [str(problem) for problem in read_dump(io.BytesIO(content)).snapshot.problems] == [
        "PodGroup (all objects): apiVersion: scheduling.k8s.io/v1 PodGroup is not known to this release"
    ]
    assert read_dump(io.BytesIO(WHOLE)).snapshot.problems == ()


class _Zeros(io.RawIOBase):
    """A file of two gigabytes that uses no disk space."""

    def __init__(self) -> None:
        self._left = 2 * 2**30

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self._left)
        buffer[:count] = bytes(count)
        self._left -= count
        return count


def _bomb(line: bytes) -> bytes:
    """Returns a valid header and 400 MB of data, compressed to much less."""
    packer = zlib.compressobj(1, wbits=31)
    part = line * (2**22 // len(line))
    return packer.compress(LINES[0]) + b"".join(packer.compress(part) for _ in range(100)) + packer.flush()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        pytest.param(
            lambda: io.BufferedReader(_Zeros()), "not a gzip file", id="two gigabytes that are not compressed"
        ),
        pytest.param(lambda: io.BytesIO(_bomb(b"0")), "more than 64 MiB", id="a gzip bomb of one line"),
        pytest.param(lambda: io.BytesIO(_bomb(b"nonsense\n")), "cannot be read", id="a gzip bomb of short lines"),
    ],
)
def test_an_invalid_dump_of_any_size_is_refused_in_bounded_memory(
    source: Callable[[], BinaryIO], sentence: str
) -> None:
    opened = source()
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableDumpError, match=sentence):
            read_dump(opened)
        assert tracemalloc.get_traced_memory()[1] < 3 * 64 * 2**20
    finally:
        tracemalloc.stop()


def test_a_dump_that_fails_half_way_is_closed_and_refused_as_incomplete() -> None:
    """Newer versions of Python warn if a writer is garbage-collected without having been closed."""
    out = io.BytesIO()
    with pytest.raises(ValueError, match="got `array`") as failed:
        write_dump(HEADER, [b"[]"], out)
    assert failed.traceback, "the traceback keeps the writer from being garbage-collected"
    assert gzip.decompress(out.getvalue()).count(b"\n") == 1
    with pytest.raises(UnreadableDumpError):
        read_dump(io.BytesIO(out.getvalue()))
