"""The gate for holds (annotations by which a person keeps a node from rebooting) and for pauses of the whole
roll-out."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.reasons import Code
from careen.core.gates.hold import hold
from careen.core.gates.question import When
from careen.core.lock import changes
from careen.core.lock.content import LockContent
from tests.careen.core.builders import a_node, a_situation, an_entry, held


def answer(annotation: str | None = None, **changes: Any) -> Code | None:
    node = a_node(annotations={} if annotation is None else {keys.HOLD: annotation})
    refused = hold.ask(a_situation(node, **changes), When.READY)
    return refused.code if refused else None


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, None),
        ("", Code.HELD),
        ("replacing a fan", Code.HELD),
        ("a fan until=2026-03-04T12:00:01Z", Code.HELD),
        ("a fan until=2026-03-04T12:00:00Z", None),
        ("until=2026-03-04T13:30:00+02:00", None),
        ("a fan, until=tomorrow", Code.HELD),
        ("a fan until=2026-03-04T11:00:00", Code.HELD),
    ],
)
def test_a_hold_annotation_without_a_readable_end_never_expires(annotation: str | None, expected: Code | None) -> None:
    assert answer(annotation) is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(changes.pause(LockContent(), "holidays", 1), Code.PAUSED, id="a person paused the lock"),
        pytest.param('{"nodeID":"manual"}', Code.PAUSED, id="kured's manual lock is in place"),
        pytest.param("reboot later", Code.LOCK_GARBAGE, id="the lock contains unparsable text"),
        pytest.param(Unknown("503"), Code.LOCK_UNKNOWN, id="the request for the lock failed"),
        pytest.param(NOT_ASKED, Code.LOCK_UNKNOWN, id="the agent has not read the lock"),
        pytest.param(held(an_entry("n2")), None, id="another node holds a claim"),
    ],
)
def test_a_paused_or_unreadable_lock_refuses_the_reboot(content: Any, expected: Code | None) -> None:
    assert answer(lock=content) is expected


def test_the_refusal_quotes_the_reason_of_the_hold() -> None:
    refused = hold.ask(a_situation(a_node(annotations={keys.HOLD: "replacing a fan"})), When.READY)
    assert refused is not None
    assert refused.sentence == "held: replacing a fan"
