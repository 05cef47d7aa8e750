"""The pods that Permit plugins make wait."""

from __future__ import annotations

from typing import Final

from scheduler_core.values import Value

LONGEST_SECONDS: Final = 15 * 60.0
"""No pod waits longer for a Permit plugin, as in kube-scheduler. A plugin may have a shorter `permit_seconds`."""


class PermitDecision(Value, kw_only=True):
    """An empty `message` allows the pod."""

    uid: str
    plugin: str
    message: str = ""


class WaitingPods:
    """What a Permit plugin may use to allow or reject pods later: create it, give it to the plugin's factory and to the
    machine. The machine obeys at its next call."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._decided: list[PermitDecision] = []

    @property
    def pods(self) -> dict[str, tuple[str, ...]]:
        """The uids of the pods that wait, and for which plugins."""
        return dict(self._waiting)

    def allow(self, uid: str, plugin: str) -> None:
        self._decided.append(PermitDecision(uid=uid, plugin=plugin))

    def reject(self, uid: str, plugin: str, message: str) -> None:
        self._decided.append(PermitDecision(uid=uid, plugin=plugin, message=message or "rejected"))

    @property
    def undone(self) -> tuple[PermitDecision, ...]:
        """What was decided since the machine's last call."""
        return tuple(self._decided)

    @property
    def has_decided(self) -> bool:
        return bool(self._decided)

    def decided(self) -> list[PermitDecision]:
        """Since the last call. For the machine."""
        found: list[PermitDecision] = []
        while self._decided:  # a plugin may decide in another thread meanwhile
            found.append(self._decided.pop(0))
        return found

    def show(self, uid: str, plugins: tuple[str, ...]) -> None:
        """For the machine. Without plugins, the pod no longer waits."""
        if plugins:
            self._waiting[uid] = plugins
        else:
            self._waiting.pop(uid, None)
