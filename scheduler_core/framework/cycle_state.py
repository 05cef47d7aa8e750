"""The typed state that plugins keep during one cycle.

Values are immutable and stored under their type; to change one, a plugin writes a new one. So a copy of the state
copies only references, and preemption can work on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Note = TypeVar("Note")


class UnpreparedError(LookupError):
    """A plugin has no state, because the profile disabled the extension point that writes it. The runner ends the cycle
    with an error."""

    def __str__(self) -> str:
        return f"reading {self.args[0]} from the cycle state: not found"


class CycleError(Exception):
    """A plugin failed, so the cycle ends; the pod must be tried again later. The message is the cause."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class CycleState:
    """The plugins' state in one pod's cycle, and the names of the plugins that skip Filter or Score for this pod."""

    __slots__ = ("_notes", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._notes: dict[type, object] = {}
        self.skipped_filters: frozenset[str] = frozenset()
        self.skipped_scores: frozenset[str] = frozenset()

    def write(self, note: object) -> None:
        """Replaces an earlier value of this type."""
        self._notes[type(note)] = note

    def write_all(self, notes: Mapping[type, object]) -> None:
        """The `notes` of another state."""
        self._notes.update(notes)

    @property
    def notes(self) -> Mapping[type, object]:
        return self._notes

    def read(self, kind: type[Note]) -> Note:
        """Raises UnpreparedError if no earlier extension point of the plugin has written it."""
        note = self._notes.get(kind)
        if not isinstance(note, kind):
            raise UnpreparedError(kind.__name__)
        return note

    def find(self, kind: type[Note]) -> Note | None:
        note = self._notes.get(kind)
        return note if isinstance(note, kind) else None

    def copy(self) -> CycleState:
        clone = CycleState()
        clone._notes = dict(self._notes)
        clone.skipped_filters = self.skipped_filters
        clone.skipped_scores = self.skipped_scores
        return clone
