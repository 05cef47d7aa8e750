"""The PreFilter plugins that skip every pod with a given spec, so that the runner need not call them.

Most pods have no claims, host ports or node affinity, so more than half of the default plugins have nothing to filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from scheduler_core.framework.extension_points import PreFilterPlugin, SkipsBySpec
from scheduler_core.model.pod import PodSpec


class SkippedBySpec:
    def __init__(self, plugins: Sequence[PreFilterPlugin]) -> None:
        self._plugins = plugins
        # Looked up once: the check costs more than `skips` of all these plugins.
        self._may_skip = tuple(p for p in plugins if isinstance(p, SkipsBySpec))
        self._known: WeakKeyDictionary[PodSpec, tuple[tuple[PreFilterPlugin, ...], frozenset[str]]] = (
            WeakKeyDictionary()
        )

    def called_and_skipped(self, spec: PodSpec) -> tuple[tuple[PreFilterPlugin, ...], frozenset[str]]:
        """The plugins to call for a pod with this spec, and the names of those that skip it; remembered per spec."""
        known = self._known.get(spec)
        if known is None:
            skipping = frozenset(p.name for p in self._may_skip if p.skips(spec))
            asked = tuple(p for p in self._plugins if p.name not in skipping)
            known = self._known[spec] = (asked, skipping)
        return known
