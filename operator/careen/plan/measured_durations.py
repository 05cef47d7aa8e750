"""How long a plan expects each node to be down: measured by the nodes' last reboots, otherwise assumed."""

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


class Typical(Value, kw_only=True):
    """The usual seconds of a step: the median of `measured` nodes, or an assumption if that is 0."""

    seconds: float
    measured: int


class Boots(Value, kw_only=True):
    """The seconds from the drained node to the node back in service: of single nodes, and for all others; and how many
    nodes were measured."""

    of: Mapping[str, float]
    others: float
    measured: int


def measured_drains(nodes: Iterable[NodeView]) -> Typical:
    """The duration of the drains before the last reboots."""
    return _typical(nodes, "drainSeconds", ASSUMED_DRAIN_SECONDS)


def measured_settling(nodes: Iterable[NodeView]) -> Typical:
    """How long the nodes kept their claims after the last reboots, until the workloads were as healthy as before."""
    return _typical(nodes, "settleSeconds", ASSUMED_SETTLE_SECONDS)


def measured_boots(nodes: Iterable[NodeView], *, drain_seconds: float, pause_seconds: float = 0.0) -> Boots:
    """The times in `careen.dev/last-reboot`, which count from the beginning of the drain; nodes without one get the
    median. `drain_seconds`: the assumed drain of a node that did not measure its own; `pause_seconds`: the pause
    between the end of the drain and the reboot."""
    of: dict[str, float] = {}
    for node in nodes:
        report = object_of(node.annotations.get(keys.LAST_REBOOT))
        took = whole(report.get("seconds"), _LONGEST_SECONDS, 1)
        if took is not None:
            drained = whole(report.get("drainSeconds"), _LONGEST_SECONDS)
            of[node.name] = max(1.0, took - (drain_seconds if drained is None else drained) - pause_seconds)
    return Boots(of=of, others=median(of.values()) if of else ASSUMED_BOOT_SECONDS, measured=len(of))


def _typical(nodes: Iterable[NodeView], name: str, assumed: float) -> Typical:
    said = (object_of(node.annotations.get(keys.LAST_REBOOT)).get(name) for node in nodes)
    seconds = [float(each) for value in said if (each := whole(value, _LONGEST_SECONDS)) is not None]
    return Typical(seconds=median(seconds) if seconds else assumed, measured=len(seconds))
