"""The verdict of a plugin: a code, reasons for people, and the plugin's name.

The codes are kube-scheduler's (k8s.io/kube-scheduler/framework, v1.36), and Unknown for decisions that this library
does not reproduce.
"""

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
    """About one pod; at extension points that run node by node, such as Filter, about one pod and one node."""

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
        """Whether the pod is refused, now or permanently (IsRejected in kube-scheduler). Unknown too: such a pod has
        not passed."""
        return self.code in (
            VerdictCode.UNSCHEDULABLE,
            VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE,
            VerdictCode.PENDING,
            VerdictCode.UNKNOWN,
        )

    @property
    def is_well_formed(self) -> bool:
        """Whether the fields are what their annotations say: a plugin may have written anything."""
        reasons = self.reasons
        is_tuple = type(self.code) is VerdictCode and isinstance(reasons, tuple)
        return is_tuple and all(isinstance(each, str) for each in reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Verdict:
        """Adds the plugin's name, unless the verdict already names a plugin or is a success."""
        return self if self.plugin or self.code is VerdictCode.SUCCESS else Verdict(self.code, self.reasons, plugin)


SUCCESS: Final = Verdict(VerdictCode.SUCCESS)
SKIP: Final = Verdict(VerdictCode.SKIP)


def unschedulable(*reasons: str) -> Verdict:
    """Refused, but evicting other pods may help."""
    return Verdict(VerdictCode.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Verdict:
    """Refused, and evicting other pods will not help."""
    return Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Verdict:
    """The plugin failed: the cycle ends, and the pod is tried again later."""
    return Verdict(VerdictCode.ERROR, reasons)


def unknown(*reasons: str) -> Verdict:
    """The result depends on a feature that this library does not reproduce."""
    return Verdict(VerdictCode.UNKNOWN, reasons)
