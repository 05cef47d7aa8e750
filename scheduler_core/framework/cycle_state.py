"""Typed notes that plugins leave for themselves within one cycle.

A note is an immutable value, kept under its own type; changing it means writing a new one. So a copy of the
state is a copy of references, and preemption can try things out on a copy without harm."""

from __future__ import annotations

from typing import TypeVar

Note = TypeVar("Note")


class UnpreparedError(LookupError):
    """A plugin misses its own note: a profile took the point away that writes it. The runner turns this into
    the end of the cycle."""

    def __str__(self) -> str:
        return f"reading {self.args[0]} from the cycle's notes: not found"


class CycleState:
    """The notes of one pod's cycle, and which plugins have excused themselves from Filter and Score."""

    __slots__ = ("_notes", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._notes: dict[type, object] = {}
        self.skipped_filters: frozenset[str] = frozenset()
        self.skipped_scores: frozenset[str] = frozenset()

    def write(self, note: object) -> None:
        """Keeps the note under its type, in place of an earlier one."""
        self._notes[type(note)] = note

    def read(self, kind: type[Note]) -> Note:
        """The note of this type; UnpreparedError when the plugin's own earlier point did not run."""
        note = self._notes.get(kind)
        if not isinstance(note, kind):
            raise UnpreparedError(kind.__name__)
        return note

    def find(self, kind: type[Note]) -> Note | None:
        """The note of this type, or None."""
        note = self._notes.get(kind)
        return note if isinstance(note, kind) else None

    def copy(self) -> CycleState:
        """A state that can be written to without the original noticing."""
        clone = CycleState()
        clone._notes = dict(self._notes)
        clone.skipped_filters = self.skipped_filters
        clone.skipped_scores = self.skipped_scores
        return clone
