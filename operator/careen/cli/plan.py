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
from careen.agent.forecast.child import supported
from careen.cli.support.agents_settings import ANY_NODE, Agents, agents_of
from careen.cli.support.connection import Cluster, look_at_lock
from careen.cli.support.files import Written, dump_of, why
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
from careen.cli.support.screen import did_you_mean, no_such_node, say
from careen.cluster.nodes import list_nodes
from careen.cluster.snapshot_reader import server_version
from careen.cluster.whole_cluster import read_cluster
from careen.core.autoscalers import removed_by
from careen.core.drain.drain_plan import rule_of
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint, Wish
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Order, Policy
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.gates import unforeseen
from careen.core.gates.budgets import works
from careen.core.lock.content import LockContent
from careen.core.people.asked import Standing, request_of, standing
from careen.plan.few_collections import few_collections
from careen.plan.measured_durations import measured_boots, measured_drains, measured_settling
from careen.plan.ranges import ranges_of
from careen.plan.rollout_rules import RolloutRules
from careen.plan.window_groups import WindowGroups
from careen.report.fleet_report import phase_of
from careen.report.openings import shut_at
from careen.report.page.plan_page import plan_html
from careen.report.plan_report import Origin, Plan, is_clean, plan_json, plan_text
from careen.report.tables import count_of, listed
from careen.report.tables import duration as shown_duration
from careen.settings.kinds import duration
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import SETTINGS, Settings, flag
from scheduler_core.cycle import Scheduler
from scheduler_core.learning.stored_estimate import learnt_searches
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import first_few
from scheduler_core.simulation.movable import movable_in_zone, movable_pods
from scheduler_core.simulation.rollout import Durations, simulate_rollout
from scheduler_core.simulation.searches import MOST_SEARCHES
from scheduler_core.simulation.timeline import Timeline
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

# Exit codes for scripts, as those of `careen forecast`.
NOT_CLEAN = 3

_FOLLOWED = (
    "concurrency",
    "order",
    "budget",
    "count_cordoned",
    "reboot_cordoned",
    "reboot_days",
    "start_time",
    "end_time",
    "time_zone",
    "windows",
    "minimum_interval",
    "cluster_minimum_interval",
    "forecast",
    "forecast_pending_allowed",
    "forecast_unknown_allowed",
    "late_policy",
    "prefer_no_schedule_taint",
    "drain_pod_selector",
    "drain_delay",
    "load_balancer_settle",
    "pods_bound_to_node",
    "force_reboot",
    "force_reboot_past_budgets",
    "reboot_delay",
    "lock_release_delay",
)
"""The settings that change a plan. A test compares this list with the settings that a simulation reads."""
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class _Duration(click.ParamType[float]):
    """An option with a duration in Go's notation, like all durations of the agents."""

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
        return at or self.fail(
            f"{value!r}: expected an instant with its offset, such as 2026-01-31T22:00:00Z", param, ctx
        )


class _World(Value, kw_only=True):
    """The input of a plan: the cluster and its agents' settings."""

    snapshot: Snapshot
    views: tuple[NodeView, ...]
    version: str
    taken_at: datetime
    agents: Agents
    notes: tuple[str, ...]
    origin: Origin
    named: tuple[str, ...] = ()  # the nodes in the agents' line now
    learnt: object = None  # of the scheduler's search, as a shadow wrote it
    released_at: str = ""  # when the last reboot ended, as the lock has it


class _Request(Value, kw_only=True):
    """The arguments of the command. The options below describe them."""

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


class _Rollout(Value, kw_only=True):
    """The values that all simulations of one plan share. Only the order of the nodes and the random seed differ."""

    world: _World
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
        """The earliest time at which the first node may start."""
        return self.request.begins or self.world.taken_at

    def simulate(self, order: Order, seed: int = 0) -> Timeline:
        """Simulates the whole roll-out with the nodes in this order. Shows the progress on the terminal."""
        rules = RolloutRules(
            self.world.views,
            replace(self.policy, order=order),
            named=self.world.named,
            moves=self.moves,
            moves_in_zone=self.moves_in_zone,
            released_at=self.world.released_at,
        )
        title = f"order {order}, seed {seed + 1} of {self.request.seeds}" if seed else f"order {order}"
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
    help="The order of the nodes; the default is the agents' --order. fewest-moves counts pods, not how important "
    "they are.",
)
@click.option("--compare", is_flag=True, help="Simulate all orders and show them side by side.")
@click.option(
    "--boot",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the end of the drain until the node is back in service; the default is what each node measured "
    "at its last reboot, or 3m.",
)
@click.option(
    "--drain",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the cordon until the node is empty; the default is the median of the last reboots, or 1m.",
)
@click.option(
    "--settle",
    type=_Duration(),
    metavar="DURATION",
    help="The time from the node's return to service until its workloads are as healthy as before; the default is the "
    "median of the last reboots, or 30s.",
)
@click.option(
    "--handover",
    type=_Duration(),
    default=5.0,
    show_default="5s",
    metavar="DURATION",
    help="The time from the release of a claim until the next node takes one.",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Plan with another value of an agents' setting, such as concurrency=3 or end-time=06:00; repeatable.",
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
    help="How many random seeds to simulate if the outcome depends on chance; the plan then shows ranges. Each seed "
    "takes as long as the first.",
)
@scheduler_config_option()
@click.option(
    "--report",
    type=Written(),
    metavar="FILE.html",
    help="Also write one self-contained page with the timeline, the moves and the risks.",
)
@output_option
@connection_options
def plan(connection: Connection, *, output: str, **given: Any) -> None:
    """Simulate the whole roll-out: which node reboots when, which pods move, what is at risk, and whether it fits the
    maintenance window. It changes nothing.

    Each drain is simulated on the cluster as the earlier drains leave it. Exit code 0: all nodes reboot in the same
    maintenance window, and every pod finds room. 3: at least one node does not reboot in that window, or a pod finds no
    room; the plan names it. 1: the plan could not be made, or --report could not be written.
    """
    request = _Request(**given)
    made = _made(request, connection)
    not_written = _write_report(request.report, made) if request.report else ""
    show(output, text=lambda width: plan_text(made, width=width), value=lambda: plan_json(made))
    if not_written:
        raise click.ClickException(not_written)
    raise click.exceptions.Exit(0 if is_clean(made) else NOT_CLEAN)


def _made(request: _Request, connection: Connection) -> Plan:
    changed = _changed(request.assignments)
    given_config = given_configuration(request.scheduler_config)
    world = _from_dump(request.dump) if request.dump else connection.ask(_from_cluster)
    policy = policy_of(_with(world.agents.settings, changed))
    chosen = _chosen(world, request)
    world, busy = _nobody_at_work(world, chosen)
    durations, assumed = _durations(world, policy, request)
    stays = rule_of(policy.drain)
    rollout = _Rollout(
        world=world,
        policy=policy,
        chosen=chosen,
        durations=durations,
        scheduler=Scheduler(given_config or agents_configuration(world.agents), world.version),
        stays=stays,
        moves=movable_pods(world.snapshot, stays),
        moves_in_zone=movable_in_zone(world.snapshot, stays),
        request=request,
    )
    wanted = Order(request.line) if request.line else policy.order
    others = {each: rollout.simulate(each) for each in Order if each is not wanted} if request.compare else {}
    timeline = rollout.simulate(wanted)
    drawn = (rollout.simulate(wanted, seed) for seed in range(1, request.seeds if timeline.is_open else 1))
    return Plan(
        timeline=timeline,
        ranges=ranges_of(itertools.chain((timeline,), drawn)),
        line=wanted,
        agents_line=policy_of(_with(world.agents.settings, {})).order,
        concurrency=policy.concurrency,
        zone=policy.window.zone,
        others=others,
        origin=replace(world.origin, settings=_followed(_with(world.agents.settings, changed))),
        closes=WindowGroups(world.views, policy).next_closing(timeline.ends) if timeline.visits else None,
        zone_of={view.name: view.zone for view in world.views},
        notes=(
            *_without_effect(changed),
            *assumed,
            *shut_at(policy, [each for each in world.views if each.name in set(chosen)], rollout.begins),
            *busy,
            *_kept_down(world),
            *_left_alone(world),
            *world.notes,
            *_agents_note(world.agents, given_config=request.scheduler_config is not None),
            *_not_foreseen(policy),
        ),
    )


def _write_report(path: Path, made: Plan) -> str:
    """Writes the page. If that fails, returns an error message, so that the command can still print the plan, which
    took long to compute."""
    try:
        path.write_text(plan_html(made), encoding="utf-8")
    except OSError as error:
        return f"the report could not be written: {path}: {why(error)}; the plan above is complete"
    say(f"The report is in {path}.", err=True)
    return ""


# ---- what is planned on ----


async def _from_cluster(cluster: Cluster) -> _World:
    release = await server_version(cluster.api)
    version, note = supported(release)
    taken_at = cluster.clock.now()
    snapshot = await read_cluster(cluster.api)
    views = {view.name: view for view in await list_nodes(cluster.api) if view.name in snapshot.columns.row_of}
    lock = (await look_at_lock(cluster)).state
    notes = [note] if note else []
    if isinstance(lock, LockContent) and lock.is_paused:
        notes.append("the cluster is paused now; the plan assumes that it has been resumed")
    return _World(
        snapshot=snapshot,
        views=tuple(views.get(node.name) or _view(node) for node in snapshot.nodes),
        version=version,
        taken_at=taken_at,
        agents=await agents_of(cluster),
        notes=(*notes, *_unread(snapshot)),
        origin=Origin(server=cluster.server, context=cluster.context_in_use, kubernetes=release, taken_at=taken_at),
        named=lock.line.names if isinstance(lock, LockContent) else (),
        released_at=lock.released_at if isinstance(lock, LockContent) else "",
    )


def _from_dump(path: Path) -> _World:
    dump = dump_of(path)
    version, note = supported(dump.header.kube_version)
    notes = [
        "a dump has no annotations: holds, measured durations and the time since a node needs a reboot are unknown",
        *([note] if note else []),
        *_unread(dump.snapshot),
    ]
    taken_at = from_rfc3339(dump.header.taken_at) or SystemClock().now()
    return _World(
        snapshot=dump.snapshot,
        views=tuple(_view(node) for node in dump.snapshot.nodes),
        version=version,
        taken_at=taken_at,
        learnt=dump.learnt,
        agents=Agents(),
        origin=Origin(dump=str(path), kubernetes=dump.header.kube_version, taken_at=taken_at),
        notes=tuple(notes),
    )


def _unread(snapshot: Snapshot) -> list[str]:
    return [f"left out an object that could not be read: {problem}" for problem in snapshot.problems[:5]]


def _view(node: Node) -> NodeView:
    """Returns a Node of a dump in the form that the gates read. The taints of the node-lifecycle controller show
    whether the Node was ready."""
    return NodeView(
        name=node.name,
        uid=node.uid,
        resource_version="",
        labels=node.labels,
        unschedulable=node.unschedulable,
        taints=tuple(Taint(key=taint.key, effect=taint.effect, value=taint.value or None) for taint in node.taints),
        ready=not any(taint.key in _NOT_READY for taint in node.taints),
    )


def _chosen(world: _World, request: _Request) -> tuple[str, ...]:
    names = request.nodes
    if names and request.waiting:
        raise click.UsageError("give either names of Nodes or --waiting")
    known = [view.name for view in world.views]
    if unknown := [name for name in names if name not in known]:
        raise no_such_node(unknown[0], known, where="of this dump" if world.origin.dump else "of this cluster")
    stays = [view for view in world.views if not removed_by(view)]
    if request.waiting:
        return tuple(
            view.name
            for view in stays
            if keys.REBOOT_LABEL in view.labels and not _is_wanted_down(view, world.taken_at)
        )
    return names or tuple(view.name for view in stays)


def _is_wanted_down(view: NodeView, now: datetime) -> bool:
    """Whether the node is in maintenance, or a person has requested a drain or maintenance. The agent reboots no such
    node."""
    if phase_of(view) == Phase.MAINTENANCE:
        return True
    request = request_of(view)
    if request is None or request.wish is Wish.REBOOT:
        return False
    return standing(request, now=now, boot="") is Standing.STANDS


def _kept_down(world: _World) -> list[str]:
    """Returns a note on the nodes in maintenance, because the plan does not simulate their claims."""
    kept = [view for view in world.views if phase_of(view) == Phase.MAINTENANCE]
    if not kept:
        return []
    ends = [request.until for view in kept if (request := request_of(view)) and request.until]
    until = f" until {rfc3339(max(ends))}" if len(ends) == len(kept) else ""
    names, verb = listed(sorted(view.name for view in kept)), "is" if len(kept) == 1 else "are"
    back = "it is" if len(kept) == 1 else "they are"
    return [f"{names} {verb} in maintenance{until}; the plan assumes that {back} back in service"]


def _left_alone(world: _World) -> list[str]:
    """Returns a note on the nodes that the agents skip because an autoscaler is removing them."""
    names = [view.name for view in world.views if removed_by(view)]
    why = "left out, because an autoscaler is removing the node; name the node to plan it"
    return [f"{first_few(names)}: {why}"] if names else []


def _nobody_at_work(world: _World, chosen: Sequence[str]) -> tuple[_World, list[str]]:
    """Returns the cluster without the cordons of nodes that are rebooting or in maintenance, and a note.

    The plan assumes that a rebooting node has not begun, and that a node in maintenance is back in service.
    """
    kept = {view.name for view in world.views if phase_of(view) == Phase.MAINTENANCE}
    begun = {view.name for view in world.views if works(view) and view.name in chosen} - kept
    if not (busy := begun | kept):
        return world, []
    snapshot, views = world.snapshot, list(world.views)
    for place, view in enumerate(views):
        progress = view.written
        if view.name in busy and isinstance(progress, Progress) and progress.is_cordoned_by_us:
            views[place] = replace(view, unschedulable=progress.prior_unschedulable)
            if not progress.prior_unschedulable:
                snapshot = snapshot.with_node_uncordoned(view.name)
    is_one = len(begun) == 1
    note = (
        f"{listed(sorted(begun))} {'is' if is_one else 'are'} already rebooting; the plan assumes that "
        f"{'it has' if is_one else 'they have'} not begun"
    )
    return replace(world, snapshot=snapshot, views=tuple(views)), [note] if begun else []


# ---- how it is planned ----


def _changed(assignments: Sequence[str]) -> dict[str, Any]:
    """Returns the settings of --set, parsed in the same way as the agents parse their flags."""
    given: dict[str, list[str]] = {}
    for text in assignments:
        name, is_there, value = text.partition("=")
        field = name.strip().removeprefix("--").replace("-", "_")
        if not is_there or field not in SETTINGS:
            raise click.BadParameter(_no_such_setting(text, name.strip()), param_hint="--set")
        given.setdefault(field, []).append(value)
    try:
        settings = resolve(flags={"node_id": [ANY_NODE], **given}, environment={}, is_whole=False).settings
    except BadSettings as error:
        raise click.BadParameter("; ".join(error.problems), param_hint="--set") from error
    return {name: getattr(settings, name) for name in given}


def _followed(settings: Settings) -> dict[str, str]:
    """Returns the settings that a plan takes into account: the names of their flags and their values."""
    return {flag(name): SETTINGS[name].kind.shown(getattr(settings, name)) for name in _FOLLOWED}


def _no_such_setting(text: str, name: str) -> str:
    names = [flag(each) for each in SETTINGS]
    if name in names:
        return f"{text!r}: expected NAME=VALUE, such as {name}=VALUE"
    hint = did_you_mean(name.replace("_", "-"), names, otherwise=".")
    return f"{text!r}: the agents have no setting {name!r}{hint} {_what_changes_a_plan()}"


def _what_changes_a_plan() -> str:
    return f"The settings that change a plan: {listed([flag(each) for each in _FOLLOWED], most=len(_FOLLOWED))}"


def _without_effect(changed: Mapping[str, Any]) -> list[str]:
    """Returns a note on the settings of --set that do not change a plan; no note if every setting does."""
    idle = [flag(name) for name in changed if name not in _FOLLOWED]
    if not idle:
        return []
    verb = "changes" if len(idle) == 1 else "change"
    return [f"--set {listed(idle, most=len(idle))} {verb} nothing in a plan. {_what_changes_a_plan()}"]


def _with(settings: Settings | None, changed: dict[str, Any]) -> Settings:
    return replace(settings or Settings(node_id=ANY_NODE), **changed)


def _durations(world: _World, policy: Policy, request: _Request) -> tuple[Durations, list[str]]:
    boot, drain, settle = request.boot, request.drain, request.settle
    drains, settling = measured_drains(world.views), measured_settling(world.views)
    drained, settled = drains.seconds if drain is None else drain, settling.seconds if settle is None else settle
    measured = measured_boots(world.views, drain_seconds=drained, pause_seconds=policy.reboot_delay_seconds)
    used = [
        (name, each) for name, each, given in (("drain", drains, drain), ("settle", settling, settle)) if given is None
    ]
    assumed = [f"--{name}" for name, each in used if not each.measured]
    notes = []
    if boot is None and measured.measured:
        notes.append(
            f"{count_of(measured.measured, 'node')} of {len(world.views)} "
            f"{'says' if measured.measured == 1 else 'say'} how long the last reboot took; the plan uses the "
            "median for the other nodes"
        )
    elif boot is None:
        assumed.append("--boot")
    notes += [
        f"--{name} is {shown_duration(timedelta(seconds=each.seconds))}, the median of what "
        f"{count_of(each.measured, 'node')} measured at the last reboot"
        for name, each in used
        if each.measured
    ]
    if assumed:
        notes.append(f"the durations are assumptions, not measurements; give {listed(assumed)} to use your own")
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
    """Returns a note on the gates that the plan cannot simulate. The plan assumes that these gates never refuse."""
    found = unforeseen(policy)
    return [f"the plan does not foresee {', '.join(found)}"] if found else []


def _agents_note(agents: Agents, *, given_config: bool) -> list[str]:
    if agents.settings is None and not agents.note:
        return ["a dump does not contain the agents' settings: the plan uses the defaults; change them with --set"]
    return [agents.note] if agents.note and not (given_config and agents.settings) else []
