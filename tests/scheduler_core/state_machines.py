"""Plays hypothesis' state machines."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine


def play(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Without shrinking, which takes minutes; a failure prints its steps."""
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=(Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
