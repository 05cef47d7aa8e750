"""One roll-out from set-up to verdict: starts everything, makes every host need a reboot, waits, and checks the rules.

The caller's function is called regularly with the progress, to show it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from drydock.checker import BrokenRule, judge
from drydock.checker.journal import AgentEvent, Fact, HostEvent, Journal, Object, claims_in, in_order, labels_of
from drydock.hosts.agent_processes import AGENT_USER, AgentProcesses, agent_user
from drydock.hosts.disturbances import (
    cordon_a_finished_node_for_a_while,
    crash_agents,
    fail_the_api_server_once,
    hold_a_node_for_a_while,
    mark_as_a_person_would,
)
from drydock.hosts.rogues import ROGUES, Rogue, Scene
from drydock.hosts.scheduler_process import run_scheduler_process
from drydock.rollout.cluster import EmbeddedCluster, running_cluster
from drydock.rollout.forecast_score import ForecastScore, score_forecasts
from drydock.rollout.monitoring_server import serving
from drydock.rollout.patience import GaveUp, TimeLimit, crowding
from drydock.rollout.progress_report import RolloutProgress, read_progress
from drydock.rollout.sample_cluster import NAMESPACE, node_names
from drydock.rollout.timings import Timings
from drydock.server.audit import sent_events, writes_of
from drydock.server.faults import seeded_faults
from drydock.server.kinds.resources import resource_named
from drydock.zoo import CITIZENS
from drydock.zoo.citizen import Citizen, Habitat
from drydock.zoo.monitoring import Monitoring

_LOOK_SECONDS = 0.25
_SETTLE_SECONDS = 30.0
# An agent is up when it has read its own Node, which takes a second of processor time. The limit for the next agent to
# become ready.
_AGENT_START_SECONDS = 30.0
# An agent that exits this often before it has read its Node will do so again.
_FUTILE_STARTS = 3
_LAST_LOOK_SECONDS = 0.5
_ROGUE_SECONDS = 60.0
# Watchdog always fires, so that people notice when no alert reaches them.
_NO_ALERTS = "^(Watchdog|InfoInhibitor)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """`patience_seconds` limits the time to the first reboot, and from each reboot to the next; more on a loaded
    machine. With `is_patience_exact` it limits the whole roll-out, by the wall clock."""

    nodes: int
    seed: int
    concurrency: int
    patience_seconds: float
    is_patience_exact: bool = False
    has_faults: bool = False
    broken_rule: str = ""
    citizens: Sequence[str] = ()  # of `drydock.zoo.CITIZENS`
    timings: Timings = field(default_factory=Timings)
    taint_seconds: float = 10.0
    port: int = 0
    # Tests of the judge itself need no real agents.
    has_agents: bool = True
    # `careen scheduler` as a process schedules, instead of the embedded cluster's own loop.
    has_scheduler: bool = False
    agent_arguments: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutVerdict:
    """`seconds` runs from the hosts' needs until the last node was back in service; `requests` counts the agents'
    requests in that time."""

    nodes: int
    rebooted: int
    setup_seconds: float
    seconds: float
    moved: int
    moved_twice: int
    forecast: ForecastScore | None
    broken: tuple[BrokenRule, ...]
    unjudged: tuple[str, ...]
    crashes: dict[str, list[int]]
    requests: int

    @property
    def sentence(self) -> str:
        """The last line of the demo's output."""
        parts = [
            f"{self.rebooted} of {self.nodes} nodes rebooted in {self.seconds:.0f} s",
            f"{self.moved} pods moved, {self.moved_twice} of them twice",
        ]
        if self.forecast is not None:
            parts.append(f"{self.forecast.hits} of {self.forecast.total} evicted pods were placed as forecast")
        broken = ", ".join(broken.rule.name for broken in self.broken)
        held = f"every judged rule held, not judged: {', '.join(self.unjudged)}" if self.unjudged else "every rule held"
        parts.append(f"BROKEN: {broken}" if broken else held)
        return ", ".join(parts)


class Rollout:
    """A cluster with its agents, made by `running_rollout`."""

    def __init__(self, plan: RolloutPlan, cluster: EmbeddedCluster, agents: AgentProcesses | None) -> None:
        self.plan = plan
        self.cluster = cluster
        self.agents = agents
        self.since = cluster.api.store.clock()
        self._began = cluster.api.store.clock()
        self._crowding = 1.0
        self._initial: dict[str, Object] = {}
        self._deaths: list[AgentEvent] = []

    async def set_up(self) -> None:
        """Places the workloads and starts the agents. Raises `GaveUp`, with the reasons, if pods or agents do not
        become ready."""
        await self.cluster.wait_until_settled(_SETTLE_SECONDS)
        mark_as_a_person_would(self.cluster, self.plan.nodes)
        self._initial = {stored.key[1]: stored.content for stored in self.cluster.api.store.items(("", "nodes"))}
        if self.agents is not None:
            for name in self.cluster.hosts.by_name:
                self.agents.start(name)
            await self._wait_for_agents()

    async def _wait_for_agents(self) -> None:
        assert self.agents is not None
        patience = TimeLimit(_AGENT_START_SECONDS)
        expected = {agent_user(name) for name in self.cluster.hosts.by_name}
        while missing := expected - {
            r.user for r in self.cluster.api.requests if r.verb == "get" and r.resource == "nodes" and r.code == 200
        }:
            self.cluster.raise_if_broken_down()
            names = sorted(user.removeprefix(AGENT_USER) for user in missing)
            futile = [name for name in names if len(self.agents.crashes.get(name, ())) >= _FUTILE_STARTS]
            if futile:
                name = futile[0]
                exit_codes = ", ".join(map(str, self.agents.crashes[name]))
                raise GaveUp(
                    f"the agent of {name} exited unexpectedly with the exit codes {exit_codes} before it read its "
                    f"Node; {self._end_of_log(name)}"
                )
            if patience.is_over(len(missing)):
                raise GaveUp(
                    f"the agents of {', '.join(names)} did not read their Nodes within {patience.waited}; "
                    f"{self._end_of_log(names[0])}"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    def _end_of_log(self, name: str) -> str:
        assert self.agents is not None
        log = self.agents.log_of(name)
        end = log.read_text(errors="replace")[-2000:].strip() if log.exists() else ""
        return f"the log of the agent of {name} ends with:\n{end}" if end else f"the agent of {name} has logged nothing"

    async def run(self, show: Callable[[RolloutProgress], None]) -> RolloutVerdict:
        """Makes every host need a reboot, and waits until all nodes are back, the time is over, or a rogue has
        acted."""
        store = self.cluster.api.store
        rogue = ROGUES.get(self.plan.broken_rule)
        scene = Scene(
            cluster=self.cluster,
            agents=self.agents,
            nodes=self.plan.nodes,
            concurrency=self.plan.concurrency,
            taint_seconds=self._taint_seconds,
        )
        if rogue is not None:
            rogue.before_the_needs(scene)
        setup_seconds = store.clock() - self._began
        self.since = store.clock()
        for name in self.cluster.hosts.by_name:
            self.cluster.hosts.need_reboot(name)
        async with self._disturbed():
            is_complete = await self._follow(show, rogue, scene)
        last = read_progress(self.cluster, self.since)
        return self._verdict(last, setup_seconds, is_complete=is_complete)

    @contextlib.asynccontextmanager
    async def _disturbed(self) -> AsyncIterator[None]:
        names = list(self.cluster.hosts.by_name)
        count, pace = self.plan.nodes, self.plan.timings
        jobs = [
            hold_a_node_for_a_while(self.cluster, count, pace.hold),
            cordon_a_finished_node_for_a_while(self.cluster, count, pace.persons_cordon),
        ]
        if self.plan.has_faults:
            jobs.append(fail_the_api_server_once(self.cluster))
            if self.agents is not None:
                jobs.append(crash_agents(self._crash_agent, names, random.Random(self.plan.seed)))
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _crash_agent(self, name: str) -> None:
        assert self.agents is not None
        self.agents.crash(name)
        self._deaths.append(AgentEvent(at=self.cluster.api.store.clock(), node=name, what="died"))

    async def _follow(self, show: Callable[[RolloutProgress], None], rogue: Rogue | None, scene: Scene) -> bool:
        """False if a rogue acted and so ended the roll-out; True at the end of the roll-out or of its time."""
        if rogue is not None and not rogue.at_the_end:
            await self._act(rogue, scene)
            await self._show_for(show, _LAST_LOOK_SECONDS)
            return False
        patience = self._patience()
        while not self._is_over() and not patience.is_over(None if self.plan.is_patience_exact else self._rebooted()):
            self._taint_seconds()
            await self._show_for(show, _LOOK_SECONDS)
        if rogue is not None:
            await rogue.act(scene)
        await self._show_for(show, _LAST_LOOK_SECONDS)
        return True

    async def _act(self, rogue: Rogue, scene: Scene) -> None:
        """Raises `GaveUp` if the fleet never reaches a state in which the rogue can act."""
        task, patience = asyncio.ensure_future(rogue.act(scene)), TimeLimit(_ROGUE_SECONDS)
        try:
            while not task.done():
                self.cluster.raise_if_broken_down()
                if patience.is_over():
                    raise GaveUp(f"no agent could break the rule {self.plan.broken_rule} within {patience.waited}")
                await asyncio.wait([task], timeout=_LOOK_SECONDS)
            task.result()
        finally:
            task.cancel()

    def _patience(self) -> TimeLimit:
        seconds = self.plan.patience_seconds
        return TimeLimit(seconds, crowding=lambda: 1.0) if self.plan.is_patience_exact else TimeLimit(seconds)

    def _rebooted(self) -> int:
        return read_progress(self.cluster, self.since).rebooted

    def _taint_seconds(self) -> float:
        """The seconds within which an agent must taint its node; more under load, so that the checker blames no agent
        for it.

        Each call measures the load. Call it during the roll-out: later load excuses no late taint.
        """
        self._crowding = max(self._crowding, crowding(ours=self.plan.nodes))
        return self.plan.taint_seconds * self._crowding

    async def _show_for(self, show: Callable[[RolloutProgress], None], seconds: float) -> None:
        self.cluster.raise_if_broken_down()
        show(read_progress(self.cluster, self.since))
        await asyncio.sleep(seconds)

    def _is_over(self) -> bool:
        """Every host has rebooted, every node is ready, and no cordon, label careen.dev/reboot or claim is left."""
        progress = read_progress(self.cluster, self.since)
        daemon_set = self.cluster.api.verbs.read(resource_named("daemonsets"), NAMESPACE, "careen").content
        marked = [
            s
            for s in self.cluster.api.store.items(("", "nodes"))
            if "careen.dev/reboot" in (s.content["metadata"].get("labels") or {})
        ]
        return (
            all(n.is_rebooted and n.is_ready and not n.is_cordoned for n in progress.nodes)
            and not marked
            and not claims_in(daemon_set)
        )

    def _verdict(self, last: RolloutProgress, setup_seconds: float, *, is_complete: bool) -> RolloutVerdict:
        journal = self.journal(is_complete=is_complete)
        judgement = judge(journal)
        returned = [write.at for plural in ("nodes", "daemonsets") for write in journal.writes(plural) if write.agent]
        seconds = max(returned, default=self.since) - self.since if is_complete else last.seconds
        return RolloutVerdict(
            nodes=self.plan.nodes,
            rebooted=last.rebooted,
            setup_seconds=setup_seconds,
            seconds=seconds,
            moved=last.moved,
            moved_twice=last.moved_twice,
            forecast=score_forecasts(list(journal.writes())),
            broken=judgement.broken,
            unjudged=tuple(judgement.unjudged),
            crashes=self.agents.crashes if self.agents is not None else {},
            requests=sum(1 for r in self.cluster.api.requests if r.user.startswith(AGENT_USER) and r.at >= self.since),
        )

    def journal(self, *, is_complete: bool) -> Journal:
        writes = list(writes_of(self.cluster.api.store.journal))
        log = [HostEvent(at=e.at, host=e.host, what=e.what, boot_id=e.boot_id) for e in self.cluster.hosts.log]
        until = self.cluster.api.store.clock()
        knows = {Fact.NEEDS, Fact.BEGINNING, Fact.GROUPS, Fact.EXITS, Fact.TURNS, Fact.OWNERS}
        agents = list(self._deaths)
        if self.agents is not None:
            # With faults, an Event may be lost on its way to the journal.
            knows |= {Fact.DEATHS} if self.plan.has_faults else {Fact.DEATHS, Fact.EVENTS}
            agents += [AgentEvent(at=until, node=name, what="broke") for name in self.agents.tracebacks]
            agents += [
                AgentEvent(at=until, node=name, what="exited", reason=str(code))
                for name, codes in self.agents.crashes.items()
                for code in codes
            ]
        if is_complete:
            knows.add(Fact.END)
        return Journal(
            entries=in_order(writes, log, agents, sent_events(writes)),
            concurrency=self.plan.concurrency,
            knows=knows,
            daemon_set=(NAMESPACE, "careen"),
            taint_seconds=self.plan.taint_seconds * self._crowding,
            until=until,
            initial=self._initial,
            groups={name: self._groups(node) for name, node in self._initial.items()},
        )

    def _groups(self, node: Object) -> dict[str, int]:
        is_control_plane = "node-role.kubernetes.io/control-plane" in labels_of(node)
        return {"everybody": self.plan.concurrency} | ({"control plane": 1} if is_control_plane else {})


@contextlib.asynccontextmanager
async def running_rollout(plan: RolloutPlan, folder: Path) -> AsyncIterator[Rollout]:
    """A roll-out that is ready for `set_up`. The end of the block ends every process and closes every port."""
    habitat = Habitat(nodes=tuple(node_names(plan.nodes)), chance=random.Random(plan.seed), pace=plan.timings.pace)
    citizens = [CITIZENS[name](habitat) for name in plan.citizens]
    monitoring = Monitoring(habitat, serve=lambda verbs: [row for each in citizens for row in each.series(verbs)])
    async with (
        serving(monitoring) if citizens else contextlib.nullcontext("") as url,
        _rollout(plan, folder, [*citizens, monitoring.citizen()] if citizens else [], url) as rollout,
    ):
        yield rollout


@contextlib.asynccontextmanager
async def _rollout(
    plan: RolloutPlan, folder: Path, citizens: Sequence[Citizen], prometheus: str
) -> AsyncIterator[Rollout]:
    suffers = (lambda user: user.startswith(AGENT_USER)) if plan.has_faults else (lambda _user: False)
    alerts = ["--prometheus-url", prometheus, "--alert-filter-regexp", _NO_ALERTS] if prometheus else []
    arguments = ["--concurrency", str(plan.concurrency), *alerts, *plan.agent_arguments]
    async with running_cluster(
        folder / "hosts",
        nodes=plan.nodes,
        seed=plan.seed,
        timings=plan.timings,
        plan=seeded_faults(plan.seed, suffers=suffers),
        port=plan.port,
        agent_arguments=arguments,
        citizens=citizens,
        schedule=partial(run_scheduler_process, folder) if plan.has_scheduler else None,
    ) as cluster:
        agents = None
        if plan.has_agents:
            agents = AgentProcesses(folder, cluster.api.url, extra_arguments=arguments)
            for host in cluster.hosts.by_name.values():
                agents.add(host)
            running = agents
            cluster.on_down = lambda host: running.kill(host.name)
            cluster.on_up = lambda host: running.start(host.name)
        try:
            yield Rollout(plan, cluster, agents)
        finally:
            if agents is not None:
                await agents.stop()
