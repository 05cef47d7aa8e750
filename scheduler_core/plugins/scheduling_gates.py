"""Keeps a pod out of the active queue until all its scheduling gates are removed (KEP-3521)."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value


class SchedulingGates(Value):
    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Verdict:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.spec.scheduling_gates)}]")
