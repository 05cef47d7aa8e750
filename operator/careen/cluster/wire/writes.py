"""One guarded write and its outcome: landed (the object contains the change), dropped (accepted, but the answer lacks
the change), stale after a conflict, rejected, or still unclear.

It carries the resourceVersion that was read. If its response is lost, the server may still apply it, so the object is
read again. Without the change in it, the write is sent once more *with the resourceVersion just read*. Both change the
object, so once one is applied, the other conflicts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from careen.cluster.wire.errors import ClusterError, Conflict, NotFound, Refused, TooManyRequests
from scheduler_core.values import Value

T = TypeVar("T")

_ATTEMPTS = 3


class Landed(Value, Generic[T]):
    """The object contains the change. `seen` comes from the response or from a later consistent read."""

    seen: T


class Dropped(Value, Generic[T]):
    """The server accepted the write, but the object in its answer lacks a part of the change: a webhook or a policy of
    admission altered it. The same write would meet the same admission."""

    seen: T
    why: str = "the API server accepted the write, but its answer lacks a part of it: a webhook or a policy alters it"


class Stale(Value):
    """Another writer changed the object first. Nothing was written. The caller reads it again and decides again."""

    why: str


class Rejected(Value):
    """Rejected, not by a conflict (a right, admission, validation). Nothing was written; a person must act."""

    why: str


class StillUnclear(Value):
    """It is unknown whether the server applied the write, or it was certainly not sent. The caller reads the object
    before its next step."""

    why: str


Written = Landed[T] | Dropped[T] | Stale | Rejected | StillUnclear


async def write_guarded(
    *,
    version: str,
    write: Callable[[str], Awaitable[T]],
    read: Callable[[], Awaitable[tuple[str, T]]],
    stands: Callable[[T], bool],
) -> Written[T]:
    """Writes with the resourceVersion `version`. After a lost response, reads the object until the outcome is known, a
    few times at most.

    `write(version)` sends the change, `read()` gives the current resourceVersion and object, `stands(object)` whether
    it contains the change. A lost first write may itself make the second conflict; then a read shows the outcome.
    """
    lost_before = False
    for _ in range(_ATTEMPTS):
        if not version:
            # The server treats an empty version as none, and would overwrite any change.
            return StillUnclear(
                "the write was not sent, because without a resourceVersion it could overwrite a change of another "
                "client"
            )
        try:
            answer = await write(version)
        except ClusterError as error:
            write_error = str(error)
            ended = _ended(error, lost_before=lost_before)
        else:
            return Landed(answer) if stands(answer) else Dropped(answer)
        if ended is not None:
            return ended
        lost_before = True
        try:
            now_at, seen = await read()
        except ClusterError as read_error:
            return StillUnclear(f"{write_error}; after this error the object could not be read again: {read_error}")
        if stands(seen):
            return Landed(seen)
        if now_at != version:
            # Another client changed the object, and this change is not in it. The lost write carries an old
            # resourceVersion, so it can now only conflict.
            return Stale(write_error)
    return StillUnclear(f"{write_error}; after {_ATTEMPTS} attempts it is still unknown whether the write took effect")


def _ended(error: ClusterError, *, lost_before: bool) -> Stale | Rejected | StillUnclear | None:
    """The outcome of a write with this error; None if only a read can show it."""
    if error.may_have_landed:
        return None
    if isinstance(error, Conflict | NotFound):
        return None if lost_before else Stale(str(error))
    if isinstance(error, TooManyRequests) or not isinstance(error, Refused):
        return StillUnclear(str(error))
    return None if lost_before else Rejected(str(error))
