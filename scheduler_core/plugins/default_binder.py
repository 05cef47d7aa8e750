"""Binds the pod to the chosen node. Refuses nothing."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import SUCCESS, Verdict
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value


class DefaultBinder(Value):
    """Always succeeds: the library writes to no cluster. The caller places the pod in a new snapshot or posts the
    Binding."""

    name: ClassVar[str] = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:  # noqa: ARG002
        return SUCCESS
