"""Finds the PreFilter plugins that skip every pod with a given spec, so that the runner need not call these plugins for
each pod.

Most pods have no claims, host ports or node affinity, so more than half of the default plugins have nothing to filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from scheduler_core.framework.extension_points import PreFilterPlugin, SkipsBySpec
from scheduler_core.model.pod import PodSpec


class SkippedBySpec:
    """The PreFilter plugins of a profile, in order. For each pod spec, remembers which plugins must be called, and the
    names of the plugins that skip every pod with that spec."""

    def __init__(self, plugins: Sequence[PreFilterPlugin]) -> None:
        self._plugins = plugins
        # Looked up once, because the check costs more than calling `skips` of all these plugins.
        self._may_skip = tuple(p for p in plugins if isinstance(p, SkipsBySpec))
        self._known: WeakKeyDictionary[PodSpec, tuple[tuple[PreFilterPlugin, ...], frozenset[str]]] = (
            WeakKeyDictionary()
        )

    def called_and_skipped(self, spec: PodSpec) -> tuple[tuple[PreFilterPlugin, ...], frozenset[str]]:
        """Returns the plugins that must be called for a pod with this spec, and the names of the plugins that skip the
        pod."""
        known = self._known.get(spec)
        if known is None:
            skipping = frozenset(p.name for p in self._may_skip if p.skips(spec))
            asked = tuple(p for p in self._plugins if p.name not in skipping)
            known = self._known[spec] = (asked, skipping)
        return known
