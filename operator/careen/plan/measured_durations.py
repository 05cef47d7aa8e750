"""How long each step of a reboot takes in a plan: as the nodes measured at their last reboots, or as assumed here."""

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
    """The usual duration of a step: the median of `measured` nodes, or an assumption if `measured` is 0."""

    seconds: float
    measured: int


class Boots(Value, kw_only=True):
    """The seconds from the end of the drain until the node is back in service: `of` each measured node, and an
    estimate for all `others`."""

    of: Mapping[str, float]
    others: float
    measured: int


def measured_drains(nodes: Iterable[NodeView]) -> Typical:
    return _typical(nodes, "drainSeconds", ASSUMED_DRAIN_SECONDS)


def measured_settling(nodes: Iterable[NodeView]) -> Typical:
    return _typical(nodes, "settleSeconds", ASSUMED_SETTLE_SECONDS)


def measured_boots(nodes: Iterable[NodeView], *, drain_seconds: float, pause_seconds: float = 0.0) -> Boots:
    """The boot times from `careen.dev/last-reboot`; nodes without it get the median of the others.

    The annotation has the time since the beginning of the drain. So the drain (`drain_seconds` if the node did not
    measure it) and `pause_seconds`, the pause before the reboot, are subtracted.
    """
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
