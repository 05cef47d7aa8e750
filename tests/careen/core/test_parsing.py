"""What others wrote is parsed once, where it is read: no decision parses the lock or a record again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from careen.core.decide import decide
from careen.core.facts import progress as records
from careen.core.facts.observation import LockReading
from careen.core.facts.phases import Phase
from careen.core.lock import content as lock
from careen.core.lock.content import Garbage, LockContent
from tests.careen.core.builders import (
    a_marked_node,
    a_policy,
    a_progress,
    a_reading,
    an_entry,
    an_observation,
    held,
)

PHASES = [
    *(each for each in Phase if each is not Phase.IDLE),
]


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How often a lock and a record are parsed."""
    count = {"locks": 0, "records": 0}
    parse, read = lock.parse, records.from_annotation

    def of_lock(text: str | None) -> LockContent | Garbage:
        count["locks"] += 1
        return parse(text)

    def of_record(text: str | None) -> records.Progress | records.UnreadableProgress:
        count["records"] += text is not None
        return read(text)

    with patch.object(lock, "parse", of_lock), patch.object(records, "from_annotation", of_record):
        yield count


def text_of(phase: Phase) -> str | None:
    """A lock with what a node of this phase holds, and another's claim."""
    claim = a_progress(phase).claim
    entries = [an_entry("n2", "c2", limit=2), *([an_entry("n1", claim, limit=2)] if claim else [])]
    return lock.render(held(*entries, next=("n3", "n1"), next_at="2026-03-04T11:59:00Z", waiting=2))


@pytest.mark.parametrize("phase", PHASES)
def test_a_decision_parses_the_lock_once(phase: Phase) -> None:
    text, node = text_of(phase), a_marked_node(a_progress(phase))
    with counted() as count:
        seen = an_observation(node, lock=a_reading(text))
        decide(seen, a_policy(concurrency=2))
    assert count["locks"] == 1


@pytest.mark.parametrize("text", [None, "", "garbage", '{"nodeID":"n1"}', '{"locks":[{"nodeID":"n1","id":"c1"}]}'])
def test_a_reading_carries_what_its_text_says(text: str | None) -> None:
    reading = LockReading.of(text, resource_version="1", daemonset_uid="u")
    assert (reading.text, reading.content) == (text, lock.parse(text))
