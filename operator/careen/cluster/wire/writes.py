"""Makes one guarded write and returns its outcome: landed (the object contains the change), stale after a conflict,
rejected, or still unclear.

A guarded write carries the resourceVersion that was read. If its response is lost, the server may still apply the
write, so the object is read again. If the object does not contain the change, the write is sent once more *with the
resourceVersion just read*. Both writes change the object. So after the server has applied one of them, the other one
gets a conflict.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from careen.cluster.wire.errors import ClusterError, Conflict, NotFound, Refused, TooManyRequests
from scheduler_core.values import Value

T = TypeVar("T")

_ATTEMPTS = 3


class Landed(Value, Generic[T]):
    """The object contains the change. `seen` is the object from the server's response or from a later consistent
    read."""

    seen: T


class Stale(Value):
    """Another writer changed the object first. Nothing was written. The caller must read the object again and decide
    again."""

    why: str


class Rejected(Value):
    """The server rejected the write for a reason other than a conflict (a right, admission, validation). Nothing was
    written; a person must act."""

    why: str


class StillUnclear(Value):
    """Either it is unknown whether the server applied the write, or the write was certainly not sent. In both cases the
    caller must read the object again before its next step."""

    why: str


Written = Landed[T] | Stale | Rejected | StillUnclear


async def write_guarded(
    *,
    version: str,
    write: Callable[[str], Awaitable[T]],
    read: Callable[[], Awaitable[tuple[str, T]]],
    stands: Callable[[T], bool],
) -> Written[T]:
    """Writes with the resourceVersion `version`. After a lost response, reads the object until the outcome is known, a
    few times at most.

    `write(version)` sends the change, `read()` returns the current resourceVersion and object, and `stands(object)`
    returns whether the object contains the change. If the response to the first write was lost, the first write itself
    may cause a conflict of the second write. After such a conflict the function reads the object to find the outcome.
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
            return Landed(await write(version))
        except ClusterError as error:
            write_error = str(error)
            ended = _ended(error, lost_before=lost_before)
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
            # Another client changed the object, and this write's change is not in the object. The lost write carries an
            # old resourceVersion, so it can now only fail with a conflict.
            return Stale(write_error)
    return StillUnclear(f"{write_error}; after {_ATTEMPTS} attempts it is still unknown whether the write took effect")


def _ended(error: ClusterError, *, lost_before: bool) -> Stale | Rejected | StillUnclear | None:
    """Returns the outcome of a write that raised this error. Returns None if only a read of the object can show the
    outcome."""
    if error.may_have_landed:
        return None
    if isinstance(error, Conflict | NotFound):
        return None if lost_before else Stale(str(error))
    if isinstance(error, TooManyRequests) or not isinstance(error, Refused):
        return StillUnclear(str(error))
    return None if lost_before else Rejected(str(error))
