"""The typed state that plugins keep during one cycle.

Each value is immutable and stored under its type; to change it, a plugin writes a new value. So copying the state
copies only references, and preemption can work on a copy.
"""

from __future__ import annotations

from typing import TypeVar

Note = TypeVar("Note")


class UnpreparedError(LookupError):
    """A plugin has no state, because the profile disabled the extension point that writes it. The runner ends the cycle
    with an error."""

    def __str__(self) -> str:
        return f"reading {self.args[0]} from the cycle state: not found"


class CycleError(Exception):
    """A plugin failed, so the cycle ends; the pod must be tried again later. `plugin` is the plugin's name, and the
    message is the cause."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class CycleState:
    """The state of the plugins in one pod's cycle, and the names of the plugins that skip Filter or Score for this
    pod."""

    __slots__ = ("_notes", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._notes: dict[type, object] = {}
        self.skipped_filters: frozenset[str] = frozenset()
        self.skipped_scores: frozenset[str] = frozenset()

    def write(self, note: object) -> None:
        """Stores the value under its type and replaces an earlier value."""
        self._notes[type(note)] = note

    def read(self, kind: type[Note]) -> Note:
        """Returns the value of this type. Raises UnpreparedError if no earlier extension point of the plugin has
        written it."""
        note = self._notes.get(kind)
        if not isinstance(note, kind):
            raise UnpreparedError(kind.__name__)
        return note

    def find(self, kind: type[Note]) -> Note | None:
        """Returns the value of this type, or None."""
        note = self._notes.get(kind)
        return note if isinstance(note, kind) else None

    def copy(self) -> CycleState:
        """Returns a copy that can be changed without affecting the original."""
        clone = CycleState()
        clone._notes = dict(self._notes)
        clone.skipped_filters = self.skipped_filters
        clone.skipped_scores = self.skipped_scores
        return clone
