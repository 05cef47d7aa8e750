"""The one function: observation + policy → decision. It dispatches on the phase; how a phase decides is in `steps/`."""

from __future__ import annotations

from careen.core.decision import Decision
from careen.core.observation import Observation
from careen.core.policy import Policy


def decide(observation: Observation, policy: Policy) -> Decision:
    """What this node does next. Total: every observation gets a decision, and none raises."""
    raise NotImplementedError
