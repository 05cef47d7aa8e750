"""Instants on the Node, for metrics: unlike those in the memory, they survive the agent's process."""

from __future__ import annotations

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339


def phase_since(node: object, phase: Phase) -> float | None:
    """The Unix time since which the Node is in this phase; None if unknown or in another phase."""
    if not isinstance(node, NodeView) or node.annotations.get(keys.PHASE) != phase.value:
        return None
    return _unix(node.annotations.get(keys.SINCE, ""))


def need_since(node: object) -> float | None:
    """The Unix time since which the host asks for a reboot; None if the record does not say."""
    if not isinstance(node, NodeView):
        return None
    progress = node.record
    return _unix(progress.need_since) if isinstance(progress, Progress) else None


def _unix(text: str) -> float | None:
    at = from_rfc3339(text)
    return None if at is None else at.timestamp()
