"""Work in which a plugin may wait for something: it may go on beside the machine, which takes what happens then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.extenders.asked_ahead import Unanswered
from scheduler_core.values import Value


class WorkEnd(Value, kw_only=True, eq=False):
    """What the work returned, or what it raised (`bug`). `was_beside`: the machine has gone on meanwhile."""

    value: Any = None
    bug: BaseException | None = None
    was_beside: bool = False


Then = Callable[[WorkEnd, float], None]
Beside = Callable[[int, Callable[[], Any]], WorkEnd | None]
"""Does the work with this number. None: it goes on, and whoever does it calls `Machine.ended`."""


def at_once(work: Callable[[], Any]) -> WorkEnd:
    try:
        return WorkEnd(value=work())
    except (Exception, Unanswered) as bug:
        return WorkEnd(bug=bug)
