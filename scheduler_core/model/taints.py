"""Taints, tolerations, and the rules by which a toleration matches a taint."""

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
        """Whether the taint excludes pods from a node. NoSchedule and NoExecute do; PreferNoSchedule only lowers the
        node's score."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Value):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether the toleration matches the taint. Effect, key and value must all match; an empty effect or key
        matches every effect or key.

        Source: api/core/v1/toleration.go, v1.36. The operators Lt and Gt tolerate nothing, because their feature gate
        is off by default.
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
    """Returns the first NoSchedule or NoExecute taint that no toleration matches, or None."""
    return next((taint for taint in taints if taint.keeps_pods_away and not tolerated(taint, tolerations)), None)


def count_unpreferred(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> int:
    """Returns the number of PreferNoSchedule taints that no toleration matches. Uses only tolerations for the effect
    PreferNoSchedule or for any effect."""
    soft = tuple(t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, soft) for taint in taints)
