"""The marks in the lock (claims, a pause, the line) and the lock's content without them."""

from __future__ import annotations

from collections.abc import Collection

from careen.core.cleanup.values import CleanupMark, Extent, LockKind
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace


class LockLeftovers(Value, kw_only=True):
    """The marks in the lock, and its content after the removal of those that go."""

    content: LockContent
    goes: tuple[CleanupMark, ...] = ()
    stays: tuple[CleanupMark, ...] = ()


def leftovers(content: LockContent, extent: Extent, *, keep: Collection[str] = ()) -> LockLeftovers:
    """careen's claims and the line go; a pause goes with the last pod that obeys it. The claims of `keep`, the nodes
    that could not be cleaned, stay."""
    marks = (*(_of_entry(entry, extent, keep) for entry in content.entries), *_line(content), *_pause(content, extent))
    is_lifted = content.is_paused and not extent.pods
    # `marks` begins with one mark for each entry, in the order of the entries.
    left = tuple(entry for entry, mark in zip(content.entries, marks, strict=False) if not mark.afterwards)
    return LockLeftovers(
        content=replace(
            content,
            entries=left,
            released_at="",
            is_paused=content.is_paused and not is_lifted,
            pause_reason="" if is_lifted else content.pause_reason,
            line=Line(),
        ),
        goes=tuple(mark for mark in marks if mark.afterwards),
        stays=tuple(mark for mark in marks if not mark.afterwards),
    )


def _of_entry(entry: Entry, extent: Extent, keep: Collection[str]) -> CleanupMark:
    because = _stays_because(entry, extent, keep)
    return CleanupMark(
        kind=LockKind.CLAIM,
        name=entry.node,
        now=f"since {entry.created}" if entry.created else "",
        afterwards="" if because else "removed",
        because=because,
    )


def _stays_because(entry: Entry, extent: Extent, keep: Collection[str]) -> str:
    if entry.node in keep:
        return "the claim points to a Node that was not cleaned"
    if entry.unread and not extent.with_unknown:
        return "the claim cannot be read in full; --unknown removes it"
    if not entry.unread and not entry.id and not extent.with_kureds:
        return "the claim is kured's; --kured removes it"
    return ""


def _line(content: LockContent) -> tuple[CleanupMark, ...]:
    names = ", ".join((*content.line.names, *content.line.passed))
    if not names and not content.line.waiting:
        return ()
    return (CleanupMark(kind=LockKind.LINE, now=names, afterwards="removed"),)


def _pause(content: LockContent, extent: Extent) -> tuple[CleanupMark, ...]:
    if not content.is_paused:
        return ()
    mark = CleanupMark(kind=LockKind.PAUSE, now=content.pause_reason, afterwards="lifted")
    if not extent.pods:
        return (mark,)
    return (
        replace(
            mark,
            afterwards="",
            because="running pods of the DaemonSet obey the pause; `careen lock resume` ends the pause",
        ),
    )
