"""Tests how the bytes of a watch response become lines, and how the lines become events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from careen.cluster.reflector.watch_lines import Said, is_further, lines_of, read_line
from careen.cluster.wire.errors import UnreadableAnswer


async def of(*chunks: bytes) -> list[bytes]:
    async def come() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [line async for line in lines_of(come(), "GET /x")]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"a\nb\n",), [b"a", b"b"]),
        ((b"a", b"b\nc", b"\n"), [b"ab", b"c"]),
        ((b"a\n\n \r\nb\n",), [b"a", b"b"]),
        ((b"a\nhalf a li",), [b"a"]),
        ((), []),
        ((b"",), []),
        (('{"name": "\u00e4"}\n'.encode()[:11], '{"name": "\u00e4"}\n'.encode()[11:]), ['{"name": "ä"}'.encode()]),
    ],
)
async def test_lines_of_a_watch_do_not_depend_on_chunk_boundaries(
    chunks: tuple[bytes, ...], lines: list[bytes]
) -> None:
    assert await of(*chunks) == lines


async def test_a_watch_line_of_more_than_32_mib_is_refused() -> None:
    with pytest.raises(UnreadableAnswer, match="more than 32 MiB"):
        await of(*[b"x" * 2**20] * 40)


def event(kind_of_event: Any, **given: Any) -> bytes:
    manifest = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web", "resourceVersion": "7"}, **given}
    return json.dumps({"type": kind_of_event, "object": manifest}).encode()


@pytest.mark.parametrize("kind_of_event", ["ADDED", "MODIFIED", "DELETED"])
def test_a_watch_event_contains_the_resource_version_at_which_the_watch_resumes(kind_of_event: str) -> None:
    said = read_line(event(kind_of_event), "Pod", "v1", "GET /x")
    assert (said.said, said.version) == (Said.CHANGE, "7")


def test_a_bookmark_event_contains_only_a_resource_version() -> None:
    said = read_line(event("BOOKMARK"), "Pod", "v1", "GET /x")
    assert (said.said, said.version) == (Said.BOOKMARK, "7")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"code": 410, "reason": "Expired"}, Said.TOO_OLD),
        ({"code": 410}, Said.TOO_OLD),
        ({"reason": "Gone"}, Said.TOO_OLD),
        ({"code": 500, "reason": "InternalError", "message": "etcd is away"}, Said.FAILED),
        ({}, Said.FAILED),
    ],
)
def test_an_error_event_means_an_expired_resource_version_or_a_failed_watch(status: dict[str, Any], said: Said) -> None:
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", **status}}).encode()
    assert read_line(line, "Pod", "v1", "GET /x").said is said


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"[]",
        b"{}",
        b"7",
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":null}',
        b'{"type":null,"object":{}}',
        event("SYNC"),
        event(""),
        event("ADDED", kind="Node"),
        event("ADDED", kind=None),
        event("ADDED", apiVersion="v2"),
        event("ADDED", metadata={}),
        event("ADDED", metadata={"resourceVersion": 7}),
        event("BOOKMARK", metadata={"name": "x"}),
    ],
)
def test_a_watch_line_that_is_not_an_event_of_the_watched_kind_is_refused(line: bytes) -> None:
    with pytest.raises(UnreadableAnswer):
        read_line(line, "Pod", "v1", "GET /x")


@pytest.mark.parametrize(
    ("version", "than", "further"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("10", "10", True),
        ("abc", "10", True),
        ("10", "abc", True),
        ("٩", "10", True),  # digits, but not those of an API server
    ],
)
def test_a_numeric_resource_version_of_a_watch_never_decreases(version: str, than: str, further: bool) -> None:
    assert is_further(version, than) is further
