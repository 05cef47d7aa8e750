"""A plugin's answer: a code, reasons for people, and the plugin's name.

The codes are kube-scheduler's (k8s.io/kube-scheduler/framework, v1.36), plus Unknown for decisions that this library
does not reproduce."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from scheduler_core.values import Value


class VerdictCode(StrEnum):
    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"
    UNKNOWN = "Unknown"


class Verdict(Value):
    """One plugin's answer about one pod, and about one node at extension points that run per node."""

    code: VerdictCode
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is VerdictCode.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is VerdictCode.SKIP

    @property
    def is_rejection(self) -> bool:
        """Refused, now or for good: kube-scheduler's IsRejected, and Unknown, which must not count as a pass."""
        return self.code in (
            VerdictCode.UNSCHEDULABLE,
            VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE,
            VerdictCode.PENDING,
            VerdictCode.UNKNOWN,
        )

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Verdict:
        """The same verdict with a plugin name; one that already has a name keeps it."""
        return self if self.plugin or self.code is VerdictCode.SUCCESS else Verdict(self.code, self.reasons, plugin)


SUCCESS: Final = Verdict(VerdictCode.SUCCESS)
SKIP: Final = Verdict(VerdictCode.SKIP)


def unschedulable(*reasons: str) -> Verdict:
    """The verdict "refused, but evicting other pods may help"."""
    return Verdict(VerdictCode.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Verdict:
    """The verdict "refused, and evicting other pods will not help"."""
    return Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Verdict:
    """The plugin failed: the cycle ends and the pod is tried again later."""
    return Verdict(VerdictCode.ERROR, reasons)


def unknown(*reasons: str) -> Verdict:
    """The answer depends on a feature that this library does not reproduce."""
    return Verdict(VerdictCode.UNKNOWN, reasons)
