"""The node for preemption; the first by name if several are equally good.

There the real scheduler chooses by the order of a Go map, which is random. Source: pickOneNodeForPreemption in
pkg/scheduler/framework/preemption/preemption.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.preemption.victims import Victims


def choose_node(candidates: Mapping[str, Victims]) -> str:
    """The node whose victims cost least. `candidates` must not be empty, and each must have a victim."""
    return min(candidates, key=lambda name: (*candidates[name].cost, name))
