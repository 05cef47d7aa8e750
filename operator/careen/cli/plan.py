"""`careen plan`: simulates the whole roll-out by the agents' own rules, from the cluster or from a dump."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from careen.agent.clock import SystemClock
from careen.cli.planning.plan_settings import changed_settings, followed_settings, with_changes, without_effect
from careen.cli.planning.planned_cluster import World, from_cluster, from_dump, kept_down, left_alone, nobody_at_work
from careen.cli.planning.unblocks import unblocks_of
from careen.cli.support.agents_settings import Agents
from careen.cli.support.files import Written, why
from careen.cli.support.options import (
    Connection,
    connection_options,
    dump_option,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.progress import progress
from careen.cli.support.scheduler_configuration import agents_configuration, given_configuration
from careen.cli.support.screen import no_such_node, say
from careen.core.drain.drain_plan import rule_of
from careen.core.drain.listed_budgets import with_listed
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, RequestKind
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Order, Policy
from careen.core.facts.times import duration as shown_duration
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.node.autoscalers import removed_by
from careen.core.people.requests import RequestState, request_of, state_of
from careen.plan.few_collections import few_collections
from careen.plan.measured_durations import measured_boots, measured_drains, measured_settling
from careen.plan.ranges import ranges_of
from careen.plan.rollout_rules import RolloutRules
from careen.plan.simulated_agent import unforeseen
from careen.plan.unblocking import ChangeKind, PlanChange, changed, lengthened
from careen.plan.window_groups import WindowGroups
from careen.report.page.plan_page import plan_html
from careen.report.plan.as_json import plan_json
from careen.report.plan.text import plan_text
from careen.report.plan.values import Plan, is_clean
from careen.report.tables import listed
from careen.rollout.openings import shut_at
from careen.settings.kinds import duration
from careen.settings.policy import policy_of
from scheduler_core.cycle import Scheduler
from scheduler_core.learning.stored_estimate import learnt_searches
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import count_of
from scheduler_core.simulation.movable import movable_in_zone, movable_pods
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.searches import MOST_SEARCHES
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.values import Value

# Exit codes for scripts, as those of `careen forecast`.
NOT_CLEAN = 3


class _Duration(click.ParamType[float]):
    """A duration in Go's notation, such as `1h30m`, like the agents' durations."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return value if isinstance(value, float) else duration(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class _Instant(click.ParamType[datetime]):
    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        at = value if isinstance(value, datetime) else from_rfc3339(value)
        return at or self.fail(f"{value!r} is not an instant with its offset, such as 2026-01-31T22:00:00Z", param, ctx)


class _Request(Value, kw_only=True):
    """The arguments of the command; the click options below describe them."""

    nodes: tuple[str, ...]
    waiting: bool
    dump: Path | None
    begins: datetime | None
    line: str | None
    compare: bool
    boot: float | None
    drain: float | None
    settle: float | None
    handover: float
    assignments: tuple[str, ...]
    days: float
    seeds: int
    scheduler_config: Path | None
    report: Path | None
    unblock: bool


class _Rollout(Value, kw_only=True):
    """What all simulations of one plan share. They differ only in order and random seed."""

    world: World
    policy: Policy
    chosen: tuple[str, ...]
    durations: Durations
    scheduler: Scheduler
    stays: Callable[[Pod], str]
    moves: Mapping[str, int]
    moves_in_zone: Mapping[str, int]
    request: _Request

    @property
    def begins(self) -> datetime:
        """The first node may start its drain from here on."""
        return self.request.begins or self.world.taken_at

    def neighbours(self) -> tuple[int, ...]:
        """Half and twice as many nodes at once, as far as that makes a difference."""
        most = self.policy.concurrency
        return tuple(each for each in (-(-most // 2), min(2 * most, len(self.chosen))) if each not in (0, most))

    def with_changes(self, changes: Sequence[PlanChange]) -> _Rollout:
        """The same roll-out after these changes."""
        uncordoned = {each.subject for each in changes if each.kind is ChangeKind.UNCORDON}
        views = tuple(
            replace(view, unschedulable=False) if view.name in uncordoned else view for view in self.world.views
        )
        world = replace(self.world, snapshot=changed(self.world.snapshot, changes), views=views)
        policy = self.policy
        if any(each.kind is ChangeKind.WINDOW for each in changes):
            policy = lengthened(policy)
        return replace(self, world=world, policy=policy)

    def simulate(self, order: Order, seed: int = 0, at_once: int = 0, purpose: str = "") -> Timeline:
        """Simulates the roll-out in this order, with `at_once` instead of --concurrency unless 0, and shows the
        progress."""
        rules = RolloutRules(
            self.world.views,
            replace(self.policy, order=order, concurrency=at_once or self.policy.concurrency),
            named=self.world.named,
            moves=self.moves,
            moves_in_zone=self.moves_in_zone,
            released_at=self.world.released_at,
        )
        title = f"simulation with the order {order}{purpose}"
        if at_once:
            title = f"{title} and {at_once} nodes at once"
        if seed:
            title = f"{title} and random seed {seed + 1} of {self.request.seeds}"
        with few_collections(), progress(title, len(self.chosen), SystemClock().monotonic) as on_progress:
            return simulate_rollout(
                self.world.snapshot,
                self.chosen,
                self.scheduler,
                rules,
                begins=self.begins,
                durations=self.durations,
                taint_key=self.policy.taint_key,
                most_days=self.request.days,
                on_progress=on_progress,
                stays=self.stays,
                seed=seed,
                possible=learnt_searches(self.world.learnt, self.world.snapshot, self.scheduler, MOST_SEARCHES),
            )


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option("--waiting", is_flag=True, help="Plan only the nodes that need a reboot now. The default is all nodes.")
@dump_option
@click.option(
    "--start",
    "begins",
    type=_Instant(),
    metavar="INSTANT",
    help="When the roll-out begins (RFC 3339); the default is now, or the time of the dump.",
)
@click.option(
    "--order",
    "line",
    type=click.Choice([each.value for each in Order]),
    help="The order of the nodes; the default is the agents' --order. With fewest-moves, only the number of "
    "pods matters, not how important the pods are.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Simulate the roll-out with each order of the nodes, and with half and twice as many nodes at once, and show "
    "the results side by side.",
)
@click.option(
    "--boot",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the end of the drain until the node is back in service. The default is the duration that each "
    "node measured at its last reboot. For a node without a measurement, the default is the median of the other nodes, "
    "or 3m if no node has a measurement.",
)
@click.option(
    "--drain",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the cordon until the node is empty. The default is the median of the nodes' measurements at "
    "their last reboots, or 1m if no node has a measurement.",
)
@click.option(
    "--settle",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the node's return to service until its workloads are as healthy as before. The default is the "
    "median of the nodes' measurements at their last reboots, or 30s if no node has a measurement.",
)
@click.option(
    "--handover",
    type=_Duration(),
    default=5.0,
    show_default="5s",
    metavar="DURATION",
    help="The time from the release of a claim until the next node takes a claim.",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Plan with another value for a setting of the agents, such as concurrency=3 or end-time=06:00; repeatable.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0.01, max=366),
    default=30.0,
    show_default=True,
    help="How many days to simulate at most.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    metavar="NUMBER",
    help="How many simulations to run, each with its own random seed, if the outcome depends on chance; the plan then "
    "shows ranges. Each further simulation takes as long as the first.",
)
@scheduler_config_option()
@click.option(
    "--report",
    type=Written(),
    metavar="FILE.html",
    help="Also write one self-contained HTML page with the timeline, the moves of pods and the risks.",
)
@click.option(
    "--unblock/--no-unblock",
    default=True,
    show_default=True,
    help="If nodes do not reboot, or not in the first window, simulate the roll-out again with up to five changes, one "
    "after another, and show what each buys. Each takes as long as the plan.",
)
@output_option
@connection_options
def plan(connection: Connection, *, output: str, **given: Any) -> None:
    """Simulate the whole roll-out: which node reboots when, which pods move, what is at risk, and whether the roll-out
    fits the maintenance window. The command changes nothing.

    Each drain is simulated on the cluster that the earlier drains left. Exit code 0: all nodes reboot in the same
    maintenance window, and every pod finds room. 3: at least one node does not reboot in that window, or a pod finds no
    room; the plan says which. 1: the plan could not be made, or --report could not be written.
    """
    request = _Request(**given)
    made = _made(request, connection)
    not_written = _write_report(request.report, made) if request.report else ""
    show(output, text=lambda width: plan_text(made, width=width), value=lambda: plan_json(made))
    if not_written:
        raise click.ClickException(not_written)
    raise click.exceptions.Exit(0 if is_clean(made) else NOT_CLEAN)


def _made(request: _Request, connection: Connection) -> Plan:
    changed = changed_settings(request.assignments)
    given_config = given_configuration(request.scheduler_config)
    world = from_dump(request.dump) if request.dump else connection.ask(from_cluster)
    if request.begins is not None and request.begins < world.taken_at:
        raise click.BadParameter(
            f"{rfc3339(request.begins)} is in the past: {'the dump was made at' if request.dump else 'it is now'} "
            f"{rfc3339(world.taken_at)}",
            param_hint="--start",
        )
    policy = policy_of(with_changes(world.agents.settings, changed))
    chosen = _chosen(world, request)
    world, busy = nobody_at_work(world, chosen)
    durations, duration_notes = _durations(world, policy, request)
    if policy.drain.slow_selectors:
        objects = world.snapshot.objects
        budgets = with_listed(objects.budgets, world.snapshot.placed_pods, policy.drain)
        world = replace(world, snapshot=world.snapshot.with_objects(budgets=budgets))
    stays = rule_of(policy.drain)
    rollout = _Rollout(
        world=world,
        policy=policy,
        chosen=chosen,
        durations=durations,
        scheduler=Scheduler(
            given_config or agents_configuration(world.agents), world.version, clock=world.taken_at.timestamp
        ),
        stays=stays,
        moves=movable_pods(world.snapshot, stays),
        moves_in_zone=movable_in_zone(world.snapshot, stays),
        request=request,
    )
    wanted = Order(request.line) if request.line else policy.order
    others = {each: rollout.simulate(each) for each in Order if each is not wanted} if request.compare else {}
    timeline = rollout.simulate(wanted)
    at_once = {each: rollout.simulate(wanted, at_once=each) for each in rollout.neighbours() if request.compare}
    drawn = (rollout.simulate(wanted, seed) for seed in range(1, request.seeds if timeline.is_open else 1))
    return Plan(
        timeline=timeline,
        ranges=ranges_of(itertools.chain((timeline,), drawn)),
        line=wanted,
        agents_line=policy_of(with_changes(world.agents.settings, {})).order,
        concurrency=policy.concurrency,
        zone=policy.window.zone,
        others=others,
        at_once=at_once,
        unblocks=unblocks_of(rollout, timeline, wanted, world.views) if request.unblock else (),
        origin=replace(world.origin, settings=followed_settings(with_changes(world.agents.settings, changed))),
        closes=WindowGroups(world.views, policy).next_closing(timeline.ends) if timeline.visits else None,
        zone_of={view.name: view.zone for view in world.views},
        notes=(
            *without_effect(changed),
            *(duration_notes if chosen else ()),
            *shut_at(policy, [each for each in world.views if each.name in set(chosen)], rollout.begins),
            *busy,
            *kept_down(world),
            *left_alone(world),
            *world.notes,
            *_agents_note(world.agents, given_config=request.scheduler_config is not None),
            *_not_foreseen(policy),
        ),
    )


def _write_report(path: Path, made: Plan) -> str:
    """Writes the HTML page. An error is returned as a sentence, so that the plan, which took long, can still be
    printed."""
    try:
        path.write_text(plan_html(made), encoding="utf-8")
    except OSError as error:
        return f"the report could not be written to {path}: {why(error)}; the plan above is complete"
    say(f"The report is in {path}.", err=True)
    return ""


def _chosen(world: World, request: _Request) -> tuple[str, ...]:
    names = request.nodes
    if names and request.waiting:
        raise click.UsageError("give either names of Nodes or --waiting, not both")
    known = [view.name for view in world.views]
    if unknown := [name for name in names if name not in known]:
        raise no_such_node(unknown[0], known, where="this dump" if world.origin.dump else "this cluster")
    stays = [view for view in world.views if not removed_by(view)]
    if request.waiting:
        return tuple(
            view.name
            for view in stays
            if keys.REBOOT_LABEL in view.labels and not _is_wanted_down(view, world.taken_at)
        )
    return names or tuple(view.name for view in stays)


def _is_wanted_down(view: NodeView, now: datetime) -> bool:
    """In maintenance, or a person has requested its drain or maintenance: the agent does not reboot it."""
    if view.shown_phase == Phase.MAINTENANCE:
        return True
    request = request_of(view)
    if request is None or request.kind is RequestKind.REBOOT:
        return False
    return state_of(request, now=now, boot="") is RequestState.PENDING


def _durations(world: World, policy: Policy, request: _Request) -> tuple[Durations, list[str]]:
    boot, drain, settle = request.boot, request.drain, request.settle
    drains, settling = measured_drains(world.views), measured_settling(world.views)
    drained, settled = drains.seconds if drain is None else drain, settling.seconds if settle is None else settle
    measured = measured_boots(world.views, drain_seconds=drained, pause_seconds=policy.reboot_delay_seconds)
    used = [
        (name, each) for name, each, given in (("drain", drains, drain), ("settle", settling, settle)) if given is None
    ]
    options_to_give = [f"--{name}" for name, each in used if not each.measured]
    notes = []
    if boot is None and measured.measured:
        notes.append(
            f"{count_of(measured.measured, 'node')} of {len(world.views)} measured how long the last reboot took; for "
            "the other nodes the plan uses the median of these durations"
        )
    elif boot is None:
        options_to_give.append("--boot")
    notes += [
        f"--{name} is {shown_duration(timedelta(seconds=each.seconds))}, the median of the durations that "
        f"{count_of(each.measured, 'node')} measured at the last reboot"
        for name, each in used
        if each.measured
    ]
    if options_to_give:
        notes.append(
            f"the plan assumes durations that no node has measured; give {listed(options_to_give)} to use your own "
            "durations"
        )
    durations = Durations(
        held_back=policy.drain.delay_seconds,
        drain=drained + policy.balancer_settle_seconds + policy.reboot_delay_seconds,
        settle=max(settled, policy.lock_release_delay_seconds),
        handover=request.handover,
        boot=measured.others if boot is None else boot,
        boot_of=measured.of if boot is None else {},
    )
    return durations, notes


def _not_foreseen(policy: Policy) -> list[str]:
    """A note on what the plan takes as all-clear."""
    events = unforeseen(policy)
    return [f"the plan does not foresee {', '.join(events)}"] if events else []


def _agents_note(agents: Agents, *, given_config: bool) -> list[str]:
    if agents.settings is None and not agents.note:
        return [
            (
                "a dump does not contain the agents' settings, so the plan uses the defaults of the settings; --set "
                "changes a setting"
            )
        ]
    return [agents.note] if agents.note and not (given_config and agents.settings) else []
