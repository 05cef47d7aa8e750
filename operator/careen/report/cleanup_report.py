"""Which of careen's marks (labels, annotations, taints, cordons, the lock) a cleanup removes and which it keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from careen.core.cleanup.values import CleanupMark
from careen.report.tables import listed, paragraph, table
from scheduler_core.sentences import count_of
from scheduler_core.values import Value

LONGEST_NOW = 60  # characters shown of a value: a forecast is kilobytes of JSON


class Cleaned(Value, kw_only=True):
    """The marks of one Node or of the lock. `trouble` says why it could not be changed."""

    name: str
    goes: tuple[CleanupMark, ...] = ()
    stays: tuple[CleanupMark, ...] = ()
    rebooting: str = ""
    is_done: bool = False
    trouble: str = ""


class Cleanup(Value, kw_only=True):
    """The result of a cleanup. `notes` are warnings, and objects that could not be read. `refused` says why nothing was
    changed."""

    nodes: tuple[Cleaned, ...]
    lock: Cleaned
    is_applied: bool
    agents: int = 0
    notes: tuple[str, ...] = ()
    refused: str = ""

    @property
    def all(self) -> tuple[Cleaned, ...]:
        """The Nodes' results and the lock's."""
        return (*self.nodes, self.lock)

    @property
    def failed(self) -> tuple[Cleaned, ...]:
        """The objects that could not be changed."""
        return tuple(each for each in self.all if each.trouble)


def cleanup_text(cleanup: Cleanup, *, width: int | None) -> str:
    """For a terminal: notes, what goes, what stays, warnings, and a summary in one sentence."""
    parts = [
        *(paragraph(f"Note: {note}", width=width) for note in cleanup.notes),
        _marks(cleanup, ("AFTERWARDS", lambda mark: mark.afterwards), width),
        _marks(cleanup, ("STAYS BECAUSE", lambda mark: mark.because), width),
        *_warnings(cleanup, width),
        *(paragraph(f"{each.name} was not changed: {each.trouble}", width=width) for each in cleanup.failed),
        paragraph(_sentence(cleanup), width=width),
    ]
    return "\n\n".join(part for part in parts if part)


def cleanup_json(cleanup: Cleanup) -> dict[str, Any]:
    """The cleanup as JSON."""
    return {
        "applied": cleanup.is_applied,
        "refused": cleanup.refused or None,
        "agents": cleanup.agents,
        "notes": list(cleanup.notes),
        "nodes": [_json(each) for each in cleanup.nodes],
        "lock": _json(cleanup.lock),
    }


def _marks(cleanup: Cleanup, column: tuple[str, Any], width: int | None) -> str:
    title, value_of = column
    rows = [
        (each.name, mark.kind.value, mark.name, _short(mark.now), value_of(mark))
        for each in cleanup.all
        for mark in (*each.goes, *each.stays)
        if value_of(mark)
    ]
    return table(("ON", "WHAT", "NAME", "NOW", title), rows, width=width) if rows else ""


def _warnings(cleanup: Cleanup, width: int | None) -> list[str]:
    """Warns of each rebooting node, because of which `careen cleanup --yes` would change nothing. Only in a dry run."""
    if cleanup.is_applied or cleanup.refused:
        return []
    busy = [each for each in cleanup.nodes if each.rebooting]
    return [
        paragraph(f"careen cleanup --yes would change nothing because of {each.name}: {each.rebooting}", width=width)
        for each in busy
    ]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NOW else f"{text[: LONGEST_NOW - 1]}…"


def _sentence(cleanup: Cleanup) -> str:
    if cleanup.refused:
        return f"careen cleanup changed nothing: {cleanup.refused}"
    touched = [each for each in cleanup.all if each.goes and not each.trouble]
    marks = sum(len(each.goes) for each in touched)
    where = _where(touched, cleanup.lock)
    if not cleanup.is_applied:
        if not marks:
            return "There are no marks of careen to remove."
        return f"This was a dry run: careen cleanup --yes would remove {count_of(marks, 'mark')} from {where}."
    removed = f"careen cleanup removed {count_of(marks, 'mark')} from {where}." if marks else "No mark was removed."
    if not cleanup.failed:
        return removed
    return f"{removed} {count_of(len(cleanup.failed), 'object')} could not be cleaned: {_names(cleanup.failed)}."


def _where(touched: Iterable[Cleaned], lock: Cleaned) -> str:
    nodes = [each for each in touched if each is not lock]
    parts = [count_of(len(nodes), "Node")] if nodes else []
    return " and ".join([*parts, *(["the lock"] if any(each is lock for each in touched) else [])])


def _names(found: Iterable[Cleaned]) -> str:
    return listed([each.name for each in found])


def _json(each: Cleaned) -> dict[str, Any]:
    return {
        "name": each.name,
        "goes": [_mark(mark, "afterwards", mark.afterwards) for mark in each.goes],
        "stays": [_mark(mark, "because", mark.because) for mark in each.stays],
        "rebooting": each.rebooting or None,
        "done": each.is_done,
        "trouble": each.trouble or None,
    }


def _mark(mark: CleanupMark, last: str, text: str) -> dict[str, str]:
    return {"kind": mark.kind.value, "name": mark.name, "now": mark.now, last: text}
