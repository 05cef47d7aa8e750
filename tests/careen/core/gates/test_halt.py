"""The gate `halt`. If the reboot of a node failed and the node still has a claim, no other node is cordoned."""

from __future__ import annotations

import pytest

from careen.core.facts.reasons import Code
from careen.core.gates import asked
from careen.core.gates.halt import halt, halted, halted_because
from careen.core.gates.question import When
from careen.core.lock import changes
from careen.core.lock import content as lock
from careen.core.lock.content import LockContent
from tests.careen.core.builders import a_situation, an_entry, held

FAILED = an_entry("n3", failed="never-ready", limit=3)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(LockContent(), None, id="no node holds a claim"),
        pytest.param(held(an_entry("n3")), None, id="another node holds a claim"),
        pytest.param(held(FAILED), Code.HALTED, id="another node has failed and keeps its claim"),
        pytest.param(held(an_entry("n1", failed="never-ready")), None, id="the node itself has failed"),
        pytest.param(
            "garbage", None, id="the gate `halt` ignores an unreadable lock, because the gate `hold` refuses it"
        ),
    ],
)
def test_the_failure_of_another_node_refuses_the_reboot(content: LockContent | str, expected: Code | None) -> None:
    refused = halt.ask(a_situation(lock=content), When.READY)
    assert (refused and refused.code) == expected


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        (
            ("n3",),
            "n3 failed (never-ready) and keeps its claim, so the roll-out halts",
        ),
        (
            ("n3", "n4"),
            "n3 failed (never-ready), n4 failed (never-ready) and keep their claims, so the roll-out halts",
        ),
        (
            ("n3", "n4", "n5", "n6"),
            (
                "n3 failed (never-ready), n4 failed (never-ready), n5 failed (never-ready) and 1 more and keep "
                "their claims, so the roll-out halts"
            ),
        ),
    ],
)
def test_the_refusal_shows_the_failed_node_and_the_remedy(failed: tuple[str, ...], sentence: str) -> None:
    content = held(*(an_entry(name, failed="never-ready") for name in failed))
    no = halted(content)
    assert no is not None
    assert no.sentence == halted_because(content) == sentence
    assert no.remedy == "repair n3 and run `careen retry n3`, or run `careen lock release n3`"
    assert no.about == tuple(f"failed node {name}" for name in failed)


def test_the_halt_gate_is_not_evaluated_for_draining_nodes() -> None:
    assert halt in asked(When.READY)
    assert halt in asked(When.CLAIMED)
    assert halt not in asked(When.BEFORE_REBOOT)


def test_no_claim_is_added_while_a_failed_node_keeps_its_claim() -> None:
    assert lock.free_slots(held(FAILED), 3) == 0
    assert changes.add(held(FAILED), an_entry("n1"), 3) is None
    assert lock.slots_beside_holders(held(FAILED), 3) == 2
    assert changes.add(held(an_entry("n3", limit=3)), an_entry("n1"), 3) is not None


def test_a_lost_claim_is_restored_even_while_a_failed_node_keeps_its_claim() -> None:
    assert changes.put_back(held(FAILED), an_entry("n1"), 3).holders == ("n3", "n1")


def test_only_the_claim_of_the_failed_node_is_marked_as_failed() -> None:
    content = held(an_entry("n3", "c3"), an_entry("n4", "c4"))
    assert [entry.node for entry in changes.mark_failed(content, "n3", "c3", "never-ready").failed] == ["n3"]
    assert changes.mark_failed(content, "n3", "other", "never-ready").failed == ()
