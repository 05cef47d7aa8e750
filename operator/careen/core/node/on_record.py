"""Reads instants from a Node's annotations for metrics. Unlike instants in the agent's memory, they survive the end of
the agent's process and pod."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339


def phase_since(node: object, phase: Phase) -> float | None:
    """Return the Unix time since which the Node has been in this phase, according to its annotations. Return None if
    the annotations do not say, or if the Node is in another phase."""
    if not isinstance(node, NodeView) or node.annotations.get(keys.PHASE) != phase.value:
        return None
    return _unix(node.annotations.get(keys.SINCE, ""))


def need_since(node: object) -> float | None:
    """Return the Unix time since which the host has asked for a reboot, according to careen's record on the Node.
    Return None if the record does not say."""
    if not isinstance(node, NodeView):
        return None
    progress = node.record
    return _unix(progress.need_since) if isinstance(progress, Progress) else None


def _unix(text: str) -> float | None:
    at = from_rfc3339(text)
    return None if at is None else at.timestamp()
