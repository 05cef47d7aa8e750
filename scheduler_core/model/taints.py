"""Taints, tolerations, and which toleration matches which taint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scheduler_core.values import Value

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"


class Taint(Value):
    key: str
    value: str
    effect: str

    @property
    def keeps_pods_away(self) -> bool:
        """PreferNoSchedule only lowers the node's score."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Value):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Effect, key and value must all match; an empty effect or key matches every one.

        Source: api/core/v1/toleration.go, v1.36. Lt and Gt tolerate nothing: their feature gate is off by default.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first NoSchedule or NoExecute taint that no toleration matches."""
    return next((taint for taint in taints if taint.keeps_pods_away and not tolerated(taint, tolerations)), None)


def count_unpreferred(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> int:
    """PreferNoSchedule taints that no toleration for this effect or for any effect matches."""
    soft = tuple(t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, soft) for taint in taints)
