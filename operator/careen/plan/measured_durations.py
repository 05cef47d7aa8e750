"""How long a plan should expect each node to be away: measured where a node's last reboot says so, assumed
elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.untrusted import object_of, whole
from scheduler_core.values import Value

ASSUMED_DRAIN_SECONDS = 60.0
ASSUMED_BOOT_SECONDS = 180.0
ASSUMED_SETTLE_SECONDS = 30.0
_LONGEST_SECONDS = 86_400  # a report of more than a day is a mistake, not a boot


class Boots(Value, kw_only=True):
    """Seconds from the drained node to the node given back: of single nodes, and for all others; how many were
    measured."""

    of: Mapping[str, float]
    others: float
    measured: int


def measured_boots(nodes: Iterable[NodeView], *, drain_seconds: float) -> Boots:
    """From `careen.dev/last-reboot`, which counts from the beginning of the drain; the others get the median of
    those that have one."""
    seconds = {node.name: took for node in nodes if (took := _seconds(node)) is not None}
    of = {name: max(1.0, took - drain_seconds) for name, took in seconds.items()}
    return Boots(of=of, others=median(of.values()) if of else ASSUMED_BOOT_SECONDS, measured=len(of))


def _seconds(node: NodeView) -> float | None:
    seconds = whole(object_of(node.annotations.get(keys.LAST_REBOOT)).get("seconds"), _LONGEST_SECONDS, 1)
    return None if seconds is None else float(seconds)
