"""What one read of the lock found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from careen.core.facts import keys
from careen.core.lock import notation
from careen.core.lock.content import Garbage, LockContent
from scheduler_core.values import Value


class LockReading(Value, kw_only=True):
    """The lock from one consistent read of careen's DaemonSet. `text` is the annotation; None if there is none."""

    content: LockContent | Garbage
    text: str | None
    resource_version: str
    daemonset_uid: str
    annotation: str = keys.LOCK_ANNOTATION
    agents: int | None = None  # how many nodes should run an agent, by the DaemonSet's status; None if it does not say
    gates: Mapping[str, str] = field(default_factory=dict)  # the DaemonSet's annotations careen.dev/gate.NAME

    @classmethod
    def of(cls, text: str | None, **others: Any) -> LockReading:
        """A reading of this annotation; `others` are the remaining fields."""
        return cls(content=notation.parse(text), text=text, **others)

    @property
    def object_id(self) -> str:
        """Which lock this is: another one if the DaemonSet is recreated or the annotation's key changes."""
        return f"{self.daemonset_uid}/{self.annotation}"
