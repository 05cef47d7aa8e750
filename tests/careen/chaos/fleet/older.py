"""Runs agents of an older release beside agents of the current release. When an older agent reads or writes the lock,
the fields that its release does not know are dropped. A context variable says for each asyncio task which release its
agent runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from careen.core.lock import content, notation

OF_THE_LOCK = ("abreast", "passed", "unsettled", "form")
OF_AN_ENTRY = ("zone", "failed", "overdue")
"""The optional fields of a claim that the first preview release of careen did not have."""

_IS_OLDER = ContextVar("is_older", default=False)
dropped = 0
"""How often an agent of the older release read or wrote the lock and thereby dropped at least one newer field."""


@contextmanager
def release(*, is_older: bool) -> Iterator[None]:
    """Let the agents that start inside this `with` block run the older release if `is_older` is true, else the current
    release."""
    token = _IS_OLDER.set(is_older)
    try:
        yield
    finally:
        _IS_OLDER.reset(token)


@contextmanager
def side_by_side() -> Iterator[None]:
    """Until the `with` block ends, patch the functions that parse the lock and write the lock. For agents of the older
    release, both functions drop the fields that the older release does not know."""
    parse, render = notation.parse, notation.render
    notation.parse = lambda text: parse(_known(text) if _IS_OLDER.get() else text)  # type: ignore[assignment]
    notation.render = lambda wanted: _written(render, wanted)  # type: ignore[assignment]
    try:
        yield
    finally:
        notation.parse, notation.render = parse, render


def _written(render: Callable[[content.LockContent], str | None], wanted: content.LockContent) -> str | None:
    text = render(wanted)
    return _known(text) if _IS_OLDER.get() else text


def _known(text: str | None) -> str | None:
    """Return the lock's JSON text without the fields that the older release does not know."""
    global dropped  # noqa: PLW0603 - counted for the report of a run, by nobody else
    try:
        lock: Any = json.loads(text or "")
    except ValueError:
        return text
    if not isinstance(lock, dict) or not isinstance(lock.get("locks") or [], list):
        return text
    rows = [_without(row, OF_AN_ENTRY) if isinstance(row, dict) else row for row in lock.get("locks") or []]
    known = {**_without(lock, OF_THE_LOCK), **({"locks": rows} if "locks" in lock else {})}
    dropped += known != lock
    return json.dumps(known, separators=(",", ":"))


def _without(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}
