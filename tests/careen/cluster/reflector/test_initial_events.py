"""A list that arrives as the beginning of a watch."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest

from careen.cluster.reflector.initial_events import InitialEvents
from careen.cluster.wire.answers import asked_for
from careen.cluster.wire.errors import Expired, ServerFailed, Unclear

END = {"k8s.io/initial-events-end": "true"}


def event(kind: str, name: str = "", version: int = 5, **meta: Any) -> bytes:
    metadata = {"name": name, "resourceVersion": str(version), **meta}
    return json.dumps({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}).encode()


def error(code: int) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "x"}}).encode()


async def stream(lines: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    for line in lines:
        yield line


async def listed(*lines: bytes) -> tuple[list[list[str]], InitialEvents]:
    """The names on each page."""
    initial = InitialEvents(stream(lines), asked_for("/api/v1/pods"), "GET pods")
    await initial.begin()
    pages = [json.loads(page) async for page in initial.pages()]
    assert all((page["kind"], page["apiVersion"]) == ("PodList", "v1") for page in pages)
    return [[item["metadata"]["name"] for item in page["items"]] for page in pages], initial


async def test_the_objects_before_the_bookmark_are_the_list_and_its_version_is_the_lists() -> None:
    pages, initial = await listed(
        event("ADDED", "a"), event("ADDED", "b"), event("BOOKMARK", version=9, annotations=END)
    )
    assert (pages, initial.version, initial.late) == ([["a", "b"]], "9", [])


async def test_a_list_without_objects_has_one_empty_page() -> None:
    pages, initial = await listed(event("BOOKMARK", version=9, annotations=END))
    assert (pages, initial.version) == ([[]], "9")


async def test_a_bookmark_without_the_annotation_does_not_end_the_list() -> None:
    pages, _ = await listed(
        event("ADDED", "a"), event("BOOKMARK"), event("ADDED", "b"), event("BOOKMARK", annotations=END)
    )
    assert pages == [["a", "b"]]


async def test_a_long_list_comes_in_pages() -> None:
    lines = [event("ADDED", f"p{number}") for number in range(1201)]
    pages, _ = await listed(*lines, event("BOOKMARK", annotations=END))
    assert [len(page) for page in pages] == [500, 500, 201]


async def test_what_happens_before_the_end_of_the_list_comes_after_it_and_in_order() -> None:
    again = [event("DELETED", "a", 6), event("ADDED", "a", 7)]
    pages, initial = await listed(event("ADDED", "a"), *again, event("BOOKMARK", version=9, annotations=END))
    assert (pages, initial.late) == ([["a"]], again)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        pytest.param([event("ADDED", "a")], Unclear, id="the watch ends"),
        pytest.param([event("ADDED", "a"), error(410)], Expired, id="too old"),
        pytest.param([error(500)], ServerFailed, id="the server fails"),
    ],
)
async def test_a_list_that_does_not_end_is_an_error(lines: list[bytes], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await listed(*lines)
