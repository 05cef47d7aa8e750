"""An answer is worked out in a copy of the process."""

from __future__ import annotations

import os
import time

import pytest

from careen.cli.serving.aside import Copy


def test_the_copy_sees_what_was_at_its_beginning_and_changes_nothing_here() -> None:
    state = ["before"]

    def work() -> bytes:
        time.sleep(0.05)
        state.append("the copy's")
        return " ".join(state).encode()

    copy = Copy(work, seconds=30)
    state[0] = "after"
    assert copy.answer() == b"before the copy's"
    assert state == ["after"]


def test_a_long_answer_arrives_whole() -> None:
    assert Copy(lambda: b"x" * 1_000_000, seconds=30).answer() == b"x" * 1_000_000


def test_an_answer_that_takes_too_long_is_given_up_and_the_copy_ends() -> None:
    copy = Copy(lambda: time.sleep(60) or b"", seconds=0.2)  # type: ignore[func-returns-value]
    with pytest.raises(TimeoutError):
        copy.answer()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_copy_that_fails_says_so() -> None:
    def work() -> bytes:
        raise RuntimeError("a bug")

    with pytest.raises(OSError, match="exit code 1"):
        Copy(work, seconds=30).answer()
