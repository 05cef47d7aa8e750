"""The gate for annotations `careen.dev/gate.NAME`. With such an annotation, another program refuses the reboot of one
node or of every node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts import keys
from careen.core.facts.observation import Unknown
from careen.core.facts.reasons import Code
from careen.core.gates.gate_annotations import gate_annotations
from careen.core.gates.question import When
from careen.core.lock.reading import LockReading
from tests.careen.core.builders import a_node, a_situation

BACKUP, DB = "careen.dev/gate.backup", "careen.dev/gate.db"


def sentence(node: dict[str, str], cluster: dict[str, str] | None = None) -> str | None:
    reading = LockReading.of(None, resource_version="1", daemonset_uid="d", gates=cluster or {})
    refused = gate_annotations.ask(a_situation(a_node(annotations=node), lock=reading), When.READY)
    assert refused is None or refused.code is Code.GATE_ANNOTATION
    return refused.sentence if refused else None


@pytest.mark.parametrize(
    ("node", "cluster", "expected"),
    [
        ({}, {}, None),
        ({keys.HOLD: "x", "careen.dev/gates.x": "x", "example.com/gate.x": "x"}, {}, None),
        ({BACKUP: "nightly dump"}, {}, "gate backup: nightly dump"),
        ({BACKUP: " "}, {}, "gate backup gives no reason"),
        ({}, {DB: "failover"}, "gate db for the whole cluster: failover"),
        ({DB: "b", BACKUP: "a"}, {BACKUP: "c"}, "gate backup: a; gate db: b; gate backup for the whole cluster: c"),
        ({"careen.dev/gate.": "x"}, {}, "gate : x"),
        ({BACKUP: "two\nlines\x1b[31m"}, {}, "gate backup: two lines"),
    ],
)
def test_the_refusal_lists_every_gate_annotation(
    node: dict[str, str], cluster: dict[str, str], expected: str | None
) -> None:
    found = sentence(node, cluster)
    assert (found or "").startswith(expected or "")
    assert (found is None) is (expected is None)


def test_a_refusal_by_many_annotations_shows_all_names_and_some_reasons() -> None:
    found = sentence({f"careen.dev/gate.g{number}": "because" for number in range(9)})
    assert found is not None
    assert [f"g{number}" in found for number in range(9)] == [True] * 9
    assert found.count("because") == 6


@given(st.dictionaries(st.text(max_size=8).map(lambda text: f"careen.dev/gate.{text}"), st.text(max_size=300)))
def test_the_refusal_by_a_gate_annotation_is_always_one_line(annotations: dict[str, str]) -> None:
    found = sentence(annotations)
    assert (found is None) is (not annotations)
    assert "\n" not in (found or "")


def test_the_refusal_is_about_each_annotation() -> None:
    reading = LockReading.of(None, resource_version="1", daemonset_uid="d", gates={DB: "failover"})
    refused = gate_annotations.ask(a_situation(a_node(annotations={BACKUP: "x"}), lock=reading), When.READY)
    assert refused is not None
    assert refused.about == (f"annotation {BACKUP}", f"annotation {DB} on the DaemonSet")


def test_an_unreadable_lock_does_not_affect_gate_annotations() -> None:
    assert gate_annotations.ask(a_situation(lock=Unknown("down")), When.READY) is None
