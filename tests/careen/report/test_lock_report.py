from __future__ import annotations

from datetime import UTC, datetime

import pytest

from careen.core.lock import Entry, Garbage, LockContent
from careen.core.observation import Unknown
from careen.report.lock_report import LockState, lock_json, lock_sentence

NOW = datetime(2026, 3, 4, 12, 4, 12, tzinfo=UTC)
N3 = Entry(node="n3", id="c1", created="2026-03-04T12:00:00Z")
KUREDS = Entry(node="n9")


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (LockContent(), "no claim held"),
        (LockContent(entries=(N3,), max_owners=2), "1 of 2 claims held by n3 (4m12s)"),
        (LockContent(entries=(KUREDS,)), "1 of 1 claims held by n9 (-)"),
        (
            LockContent(entries=(N3,), max_owners=1, next=("n4", "n5"), waiting=7),
            "1 of 1 claims held by n3 (4m12s); next: n4, n5; 7 nodes waiting when these were named",
        ),
        (LockContent(is_paused=True), "PAUSED by hand; no claim held"),
        (LockContent(entries=(N3,), max_owners=1, is_paused=True, pause_reason="freeze"), "PAUSED by hand: freeze; 1 of 1 claims held by n3 (4m12s)"),
        (Garbage("it is not JSON"), "cannot be understood (it is not JSON), so no node may start; `careen lock show` prints it"),
        (Unknown("403"), "could not be read: 403"),
    ],
    ids=["free", "held", "kured's own entry without a time", "held and named", "paused", "paused with a reason and a holder", "garbage", "unread"],
)
def test_the_lock_in_one_sentence(state: LockState, sentence: str) -> None:
    assert lock_sentence(state, NOW) == sentence


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (LockContent(), "free"), (LockContent(entries=(N3,)), "held"), (LockContent(entries=(N3,), is_paused=True), "paused"),
        (Garbage("x"), "garbage"), (Unknown("x"), "unknown"),
    ],
    ids=["free", "held", "paused comes before held", "garbage", "unread"],
)
def test_the_json_says_the_state_in_one_word(state: LockState, word: str) -> None:
    assert lock_json(state)["state"] == word
