"""Checks rules on real nodes that tests/cluster does not check: evictions, budgets and the number of boots. The
functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tests.cluster.harness.observer import PodLife, Seen
from tests.cluster.harness.rules import BLUR
from tests.cluster.harness.workloads import SHOP


def left_without_eviction(seen: Seen) -> list[str]:
    """Return one sentence for each pod of the namespace `shop` that left a cordoned node without an eviction."""
    return [
        f"{life.name} left {life.node} without an eviction"
        for life in _shop(seen)
        if life.deleting_at and not (life.from_daemonset or life.is_static or life.evicted) and _cordoned(seen, life)
    ]


def budget_was_kept(seen: Seen, app: str, *, replicas: int, unavailable: int) -> list[str]:
    """Check that at most `unavailable` pods of the application were out of service at once. The check begins when all
    pods of the application are in service."""
    lives = [life for life in _shop(seen) if life.labels.get("app") == app]
    changes = [(life.ready_at, 1) for life in lives if life.ready_at]
    changes += [(life.deleting_at, -1) for life in lives if life.ready_at and life.deleting_at]
    serving, was_whole, least = 0, False, replicas
    for _, change in sorted(changes):
        serving += change
        was_whole = was_whole or serving == replicas
        least = min(least, serving) if was_whole else least
    return [] if least >= replicas - unavailable else [f"only {least} of {replicas} pods of {app} were in service"]


def rebooted_often(seen: Seen, expected: Mapping[str, int]) -> list[str]:
    """Check that each node got the expected number of new boot ids."""
    sentences = []
    for name, count in expected.items():
        boots = [one.boot_id for one in seen.nodes if one.name == name and one.boot_id]
        found = sum(before != after for before, after in pairwise(boots))
        if found != count:
            sentences.append(f"{name} booted {found} times, not {count}")
    return sentences


def _shop(seen: Seen) -> list[PodLife]:
    return [life for life in seen.pods.values() if life.namespace == SHOP]


def _cordoned(seen: Seen, life: PodLife) -> bool:
    """Whether the pod's node was cordoned when the deletion of the pod was requested."""
    at = (life.deleting_at or 0) - BLUR
    history = [one for one in seen.nodes if one.name == life.node and one.at <= at]
    return bool(history and history[-1].unschedulable)
