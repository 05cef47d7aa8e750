"""Tests the cached claims and volumes, also while one is assumed to be written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.cache.cluster_cache import ClusterCache
from tests.scheduler_core.plugins.asking import volume

KIND = "PersistentVolume"


def told(kind: str, version: int, **metadata: Any) -> dict[str, Any]:
    made = volume("v")
    made["metadata"] |= {"resourceVersion": str(version), **metadata}
    return {"type": kind, "object": made}


def seen(cache: ClusterCache) -> list[str]:
    """The labels that a snapshot shows on each volume."""
    return [each.labels.get("who", "") for each in cache.snapshot().objects.volumes.values()]


def with_assumed() -> tuple[ClusterCache, Any]:
    cache = ClusterCache()
    cache.apply(told("ADDED", 5))
    wanted = replace(cache.find(KIND, "v"), labels={"who": "assumed"})
    cache.assume_object(KIND, "v", wanted)
    return cache, wanted


def test_an_assumed_object_is_seen_in_snapshots_only() -> None:
    cache, _ = with_assumed()
    assert (seen(cache), cache.find(KIND, "v").labels) == (["assumed"], {})


def test_an_event_with_another_object_ends_the_assumption() -> None:
    cache, wanted = with_assumed()
    cache.apply(told("MODIFIED", 6, labels={"who": "server"}))
    assert seen(cache) == ["server"]
    cache.forget_object(KIND, "v", wanted)
    assert seen(cache) == ["server"]


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_deletion_ends_the_assumption(comes_back: bool) -> None:
    cache, _ = with_assumed()
    cache.apply(told("DELETED", 6))
    if comes_back:
        cache.apply(told("ADDED", 7))
    assert seen(cache) == [""] * comes_back


def test_only_the_value_that_was_assumed_last_can_be_forgotten() -> None:
    cache, wanted = with_assumed()
    again = replace(wanted)
    cache.assume_object(KIND, "v", again)
    cache.forget_object(KIND, "v", wanted)
    assert seen(cache) == ["assumed"]
    cache.forget_object(KIND, "v", again)
    assert seen(cache) == [""]


def test_an_object_that_does_not_exist_cannot_be_assumed() -> None:
    cache, wanted = with_assumed()
    cache.assume_object(KIND, "w", replace(wanted, name="w"))
    assert len(seen(cache)) == 1
