"""Text that other clients can write is parsed only once, when it is read. A decision does not parse the lock, or the
annotation with the progress of a Node, again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from careen.core.decide import decide
from careen.core.facts import observation
from careen.core.facts import progress as records
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.lock import notation
from careen.core.lock.content import Garbage, LockContent
from careen.core.lock.line import Line
from careen.core.lock.reading import LockReading
from tests.careen.core.builders import (
    BOOT,
    a_fleet,
    a_marked_node,
    a_node,
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
    """Count how often the code in this `with` block parses a lock, and how often it parses the record of a Node (the
    annotation with its progress)."""
    count = {"locks": 0, "records": 0}
    parse, read = notation.parse, observation.from_annotation

    def of_lock(text: str | None) -> LockContent | Garbage:
        count["locks"] += 1
        return parse(text)

    def of_record(text: str | None) -> records.Progress | records.UnreadableProgress:
        count["records"] += text is not None
        return read(text)

    with patch.object(notation, "parse", of_lock), patch.object(observation, "from_annotation", of_record):
        yield count


def text_of(phase: Phase) -> str | None:
    """Return the text of a lock with a claim of n2. If the phase requires a claim, the lock also contains a claim of
    n1."""
    claim = a_progress(phase).claim
    entries = [an_entry("n2", "c2", limit=2), *([an_entry("n1", claim, limit=2)] if claim else [])]
    return notation.render(held(*entries, line=Line(names=("n3", "n1"), at="2026-03-04T11:59:00Z", waiting=2)))


@pytest.mark.parametrize("phase", PHASES)
def test_a_decision_parses_the_lock_once(phase: Phase) -> None:
    text, node = text_of(phase), a_marked_node(a_progress(phase))
    with counted() as count:
        seen = an_observation(node, lock=a_reading(text))
        decide(seen, a_policy(concurrency=2))
    assert count["locks"] == 1


@pytest.mark.parametrize("phase", PHASES)
def test_a_decision_parses_the_progress_record_of_each_node_once(phase: Phase) -> None:
    with counted() as count:
        node = a_marked_node(a_progress(phase))
        others = [a_marked_node(a_progress(Phase.WAITING), name=f"n{number}") for number in range(2, 50)]
        fleet = a_fleet(node, *others)
        seen = an_observation(node, waiters=(node, *others), fleet=fleet, lock=held(an_entry("n2", "c2")))
        decide(seen, a_policy(concurrency=2))
    assert count["records"] == 49


@pytest.mark.parametrize("text", [None, "", "garbage", '{"nodeID":"n1"}', '{"locks":[{"nodeID":"n1","id":"c1"}]}'])
def test_a_lock_reading_has_the_text_of_the_annotation_and_the_parsed_lock(text: str | None) -> None:
    reading = LockReading.of(text, resource_version="1", daemonset_uid="u")
    assert (reading.text, reading.content) == (text, notation.parse(text))


def test_a_node_view_with_a_new_annotation_contains_the_new_progress_record() -> None:
    node = a_marked_node(a_progress(Phase.DRAINING))
    assert node.record == a_progress(Phase.DRAINING)
    without = replace(node, annotations={})
    assert without.record == records.Progress()
    assert replace(without, annotations=node.annotations) == node
    assert isinstance(a_node(annotations={"careen.dev/progress": "no record"}).record, records.UnreadableProgress)


def test_a_node_view_parses_its_progress_record_only_from_the_annotations() -> None:
    """`NodeView` accepts a record as the argument `written`, but ignores this argument. Here the annotations contain no
    record, so the record of the view is empty."""
    node = NodeView(name="n1", uid="u", resource_version="1", written=a_progress(Phase.DRAINING, boot_left=BOOT))
    assert node.written == node.record == records.Progress()
