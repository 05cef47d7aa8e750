"""A plan and how it was computed, and its instants and durations in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo

from msgspec import field

from careen.core.facts.policy import Order
from careen.core.facts.times import duration
from careen.plan.ranges import Ranges
from careen.plan.unblocking import Bought
from scheduler_core.simulation.timeline import Timeline, Wait
from scheduler_core.values import Value


class Origin(Value, kw_only=True):
    """Where a plan's data comes from. An empty text means unknown."""

    taken_at: datetime  # of the snapshot
    kubernetes: str = ""  # the Kubernetes release that the simulation reproduces
    server: str = ""
    context: str = ""  # of the kubeconfig
    dump: str = ""  # the file, if no cluster was asked
    # the settings that affect a plan, in the notation of flags
    settings: Mapping[str, str] = field(default_factory=dict)


class Plan(Value, kw_only=True):
    """A simulated roll-out, and how it was computed. `zone` is the report's time zone."""

    timeline: Timeline
    line: Order
    agents_line: Order  # --order of the cluster's agents
    concurrency: int
    zone: tzinfo = UTC
    notes: tuple[str, ...] = ()
    ranges: Ranges | None = None  # over several seeds; the timeline is that of the first
    others: Mapping[Order, Timeline] = field(default_factory=dict)  # the same roll-out in other orders, to compare
    at_once: Mapping[int, Timeline] = field(default_factory=dict)  # and with other values of --concurrency
    origin: Origin | None = None
    closes: datetime | None = None  # when the window in which the last node is done ends; None: it never does
    unblocks: tuple[Bought, ...] = ()  # what changes buy, each on top of those before it
    zone_of: Mapping[str, str] = field(default_factory=dict)  # each node's topology zone


def is_clean(plan: Plan) -> bool:
    """All nodes reboot in one window and every pod finds room, with every simulated seed."""
    return plan.timeline.is_clean and not (plan.ranges and plan.ranges.not_clean)


def comparison(plan: Plan) -> list[tuple[Order, Timeline]]:
    """Each order with its timeline, the plan's own first."""
    return [(plan.line, plan.timeline), *plan.others.items()]


def widths(plan: Plan) -> list[tuple[int, Timeline]]:
    """The plan's --concurrency and the others, with their timelines, in order."""
    return sorted({**plan.at_once, plan.concurrency: plan.timeline}.items())


def instant(plan: Plan, at: datetime) -> str:
    """`Thu 2026-01-01 06:00 CET` in the plan's zone, with seconds only if they are not 0."""
    return f"{without_zone(plan, at)} {at.astimezone(plan.zone):%Z}"


def without_zone(plan: Plan, at: datetime) -> str:
    """For a column whose header names the zone."""
    local = at.astimezone(plan.zone)
    return f"{local:%a %Y-%m-%d %H:%M:%S}" if local.second else f"{local:%a %Y-%m-%d %H:%M}"


def waited(timeline: Timeline, wait: Wait) -> str:
    """Such as "for 4m", or that the pod waits until after the end of the plan."""
    return f"for {seconds_text(wait.seconds(timeline.ends))}" if wait.until else "until after the end of the plan"


def seconds_text(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))
