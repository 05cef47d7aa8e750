from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from careen.core.facts.observation import NodeView, Unknown
from careen.core.lock.content import Entry, Garbage, LockContent, Overdue
from careen.core.lock.line import Line
from careen.report.lock_report import LockState, StrayClaim, lock_json, lock_sentence, lock_text, stray_claims

NOW = datetime(2026, 3, 4, 12, 4, 12, tzinfo=UTC)
N3 = Entry(node="n3", id="c1", created="2026-03-04T12:00:00Z")
KUREDS = Entry(node="n9")


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (LockContent(), "no node holds a claim"),
        (LockContent(entries=(N3,), max_owners=2), "1 of 2 claims held by n3 (4m12s)"),
        (LockContent(entries=(KUREDS,)), "1 of 1 claims held by n9 (-)"),
        (
            LockContent(entries=(N3,), max_owners=1, line=Line(names=("n4", "n5"), waiting=7)),
            "1 of 1 claims held by n3 (4m12s); next: n4, n5, chosen from 7 waiting nodes",
        ),
        (
            LockContent(entries=(replace(N3, failed="never-ready"),), max_owners=3),
            (
                "HALTED: n3 failed (never-ready) and keeps its claim, so the roll-out halts; 1 of 3 claims held by n3 "
                "(4m12s)"
            ),
        ),
        (
            LockContent(
                entries=(replace(N3, overdue=Overdue(phase="Rebooting", since="2026-03-04T12:00:10Z")),), max_owners=1
            ),
            (
                "OVERDUE: n3 was asked to reboot at 2026-03-04 12:00 UTC and has not come back; 1 of 1 "
                "claims held by n3 (4m12s)"
            ),
        ),
        (LockContent(is_paused=True), "PAUSED: a person paused the lock; no node holds a claim"),
        (
            LockContent(entries=(N3,), max_owners=1, is_paused=True, pause_reason="freeze"),
            "PAUSED: a person paused the lock (freeze); 1 of 1 claims held by n3 (4m12s)",
        ),
        (
            Garbage("the text of the lock is not JSON"),
            (
                "the lock cannot be understood (the text of the lock is not JSON), so no reboot may start; `careen "
                "lock show` prints the lock"
            ),
        ),
        (Unknown("403"), "the lock could not be read: 403"),
    ],
    ids=[
        "no claim",
        "one claim",
        "a claim written by kured without a time",
        "a claim and the next nodes",
        "a failed node that halts the roll-out",
        "an overdue node",
        "paused",
        "paused with a reason, and one claim",
        "unreadable content",
        "the lock could not be read",
    ],
)
def test_one_sentence_describes_each_state_of_the_lock(state: LockState, sentence: str) -> None:
    assert lock_sentence(state, NOW) == sentence


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (LockContent(), "free"),
        (LockContent(entries=(N3,)), "held"),
        (LockContent(entries=(N3,), is_paused=True), "paused"),
        (Garbage("x"), "garbage"),
        (Unknown("x"), "unknown"),
    ],
    ids=["no claim", "one claim", "paused, and one claim", "unreadable content", "the lock could not be read"],
)
def test_the_json_output_contains_the_state_of_the_lock_as_one_word(state: LockState, word: str) -> None:
    assert lock_json(state)["state"] == word


def test_the_json_output_of_the_lock_has_the_phase_and_start_time_of_an_overdue_node() -> None:
    late = replace(N3, overdue=Overdue(phase="Rebooting", since="2026-03-04T12:00:10Z"))
    told = [row["overdue"] for row in lock_json(LockContent(entries=(late, KUREDS)))["holders"]]
    assert told == [{"phase": "Rebooting", "since": "2026-03-04T12:00:10Z"}, None]


def test_a_claim_is_reported_as_stray_if_its_node_was_deleted_or_recreated() -> None:
    nodes = [NodeView(name=name, uid=f"uid-{name}", resource_version="1") for name in ("n1", "n2", "n3")]
    entries = (
        Entry(node="n1", uid="uid-n1"),
        Entry(node="n2", uid="former"),
        Entry(node="n3"),
        Entry(node="n9", uid="x"),
        Entry(node="n9", uid="y"),
    )
    assert stray_claims(LockContent(entries=entries), nodes) == (
        StrayClaim(node="n2", is_another=True),
        StrayClaim(node="n9", is_another=False),
    )
    assert stray_claims(Garbage("x"), nodes) == stray_claims(Unknown("403"), nodes) == ()


def test_a_claim_of_a_missing_node_is_shown_with_the_remedy() -> None:
    text = lock_text(LockContent(entries=(N3,)), {}, NOW, where="DaemonSet careen/careen")
    assert (
        "a claim is held by n3, but there is no Node n3. careen frees the claim when this state has "
        "lasted longer than the reboot deadline. " in text
    )
    assert (
        "`careen lock release n3` frees the claim immediately: run it only if you know that the host is down or idle."
        in text
    )


def test_the_json_output_of_the_lock_contains_the_failed_node_and_the_remedy() -> None:
    said = lock_json(LockContent(entries=(replace(N3, failed="never-ready"), KUREDS), max_owners=3))
    assert [(each["node"], each["failed"]) for each in said["holders"]] == [("n3", "never-ready"), ("n9", "")]
    assert said["haltedBecause"].startswith("n3 failed (never-ready) and keeps its claim")
    assert lock_json(LockContent(entries=(N3,)))["haltedBecause"] == ""


def test_careen_lock_show_says_what_to_do_about_a_halt() -> None:
    halted = LockContent(entries=(replace(N3, failed="never-ready"),), max_owners=1)
    told = "What you can do: repair n3 and run `careen retry n3`, or run `careen lock release n3`."
    assert lock_text(halted, {}, NOW, where="DaemonSet careen/careen").splitlines()[1] == told
    assert "What you can do" not in lock_text(LockContent(entries=(N3,)), {}, NOW, where="DaemonSet careen/careen")
