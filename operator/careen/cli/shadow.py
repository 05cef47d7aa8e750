"""`careen shadow`: compares each binding with the node that scheduler_core would choose."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from careen.agent.forecast.child import supported
from careen.agent.telemetry.http_server import Heartbeat, HttpServer
from careen.agent.telemetry.shadow_metrics import ShadowMetrics, Traffic
from careen.cli.serving.metrics_server import serve_metrics
from careen.cli.snapshot import write_snapshot
from careen.cli.support.agents_settings import agents_of
from careen.cli.support.connection import watching_transport
from careen.cli.support.files import Written
from careen.cli.support.options import (
    Connection,
    connection_options,
    metrics_options,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.scheduler_configuration import agents_configuration, given_configuration
from careen.cli.support.screen import BadInput, say
from careen.cluster.reflector.cluster_feed import ClusterFeed
from careen.cluster.reflector.sources import sources
from careen.cluster.reflector.streams import ClientStreams
from careen.cluster.snapshot_reader import server_version
from careen.cluster.wire.api import ClusterApi
from careen.report.shadow.shadow_report import Followed, exit_code, nodes_said, shadow_json, shadow_text
from careen.report.tables import listed
from careen.shadow.following import Following
from careen.shadow.shadow import Shadow
from scheduler_core.cache.cluster_cache import ClusterCache
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.learning.stored_estimate import to_mapping
from scheduler_core.sentences import count_of
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster

_ONCE_SECONDS: Final = 300
_SECONDS_PER_LINE: Final = 30.0
_LOOP_SECONDS: Final = 120.0  # a list of 150,000 pods is one step of the loop


class Options(Value, kw_only=True):
    """Runs until it is interrupted if `seconds` and `bindings` are None."""

    seconds: int | None
    bindings: int | None
    snapshot: Path | None
    configuration: Configuration | None
    profiles: tuple[str, ...]
    last: int
    metrics_host: str
    metrics_port: int | None
    output: str


@click.command()
@click.option(
    "--once",
    is_flag=True,
    help=f"End after --for or --bindings, or after {_ONCE_SECONDS} s if neither is given, and print the results.",
)
@click.option(
    "--for", "seconds", type=click.IntRange(min=1), metavar="SECONDS", help="How many seconds to follow the cluster."
)
@click.option(
    "--bindings", type=click.IntRange(min=1), metavar="N", help="How many pods to compare before the command ends."
)
@click.option(
    "--snapshot",
    type=Written(),
    metavar="FILE",
    help="Write a dump for `forecast --from` and `plan --from` to this file when the command ends and on SIGUSR1.",
)
@scheduler_config_option(otherwise="the agents' configuration")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="Compare only pods with this schedulerName; repeatable. The default is all profiles of the configuration.",
)
@click.option(
    "--last",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many of the last disagreements between kube-scheduler and scheduler_core to show.",
)
@metrics_options
@output_option
@connection_options
def shadow(
    connection: Connection,
    *,
    once: bool,
    seconds: int | None,
    bindings: int | None,
    snapshot: Path | None,
    scheduler_config: Path | None,
    profiles: tuple[str, ...],
    last: int,
    metrics_host: str,
    metrics_port: int | None,
    output: str,
) -> None:
    """For each pod that kube-scheduler binds, compare its node with the node that scheduler_core would have chosen at
    that time, and show how often the two agree. The command lists and watches; it changes nothing.

    Without --once, --for or --bindings the command runs until it is interrupted, and then prints the table. Exit code
    3: at least 30 pods were compared, and the two agree on less than 80 % of them, so the scheduler probably has
    another configuration than careen was given. 4: no bound pod could be compared. 0: any other result.
    """
    options = Options(
        seconds=seconds or (_ONCE_SECONDS if once and bindings is None else None),
        bindings=bindings,
        snapshot=snapshot,
        configuration=given_configuration(scheduler_config),
        profiles=profiles,
        last=last,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
        output=output,
    )
    raise click.exceptions.Exit(connection.ask(lambda cluster: _run(cluster, options)))


async def _run(cluster: Cluster, options: Options) -> int:
    """Follows the cluster until the command ends. Returns its exit code."""
    release = await server_version(cluster.api)
    version, note = supported(release)
    configuration, agents_note = await _configuration(cluster, options.configuration)
    scheduler = Scheduler(configuration, version, clock=lambda: cluster.clock.now().timestamp())
    notes = tuple(each for each in (note, agents_note) if each)
    run = _Run(cluster, options, scheduler, release, notes)
    try:
        return await run.follow()
    finally:
        await run.end()


async def _configuration(cluster: Cluster, given: Configuration | None) -> tuple[Configuration, str]:
    """The given configuration, otherwise the agents', otherwise the default; and a note why the agents' could not be
    read."""
    if given is not None:
        return given, ""
    agents = await agents_of(cluster)
    return agents_configuration(agents) or Configuration(), agents.note


class _Run:
    """One run of `careen shadow`."""

    def __init__(
        self, cluster: Cluster, options: Options, scheduler: Scheduler, release: str, notes: tuple[str, ...]
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._release = release
        self._notes = notes
        self._monotonic = cluster.clock.monotonic
        self._scheduler = scheduler
        self._transport = watching_transport(cluster.kubeconfig, cluster.context)
        api = ClusterApi(self._transport, cluster.clock, chance=random.random)
        cache = ClusterCache()
        self._shadow = Shadow(
            cache, scheduler, profiles=_profiles(options, scheduler), monotonic=self._monotonic, now=cluster.clock.now
        )
        self._feed = ClusterFeed(
            api,
            ClientStreams(self._transport, cluster.clock.now),
            sources(),
            cache=cache,
            audience=self._shadow,
            chance=random.random,
        )
        self._following = Following(self._feed, self._shadow, self._on_step)
        self._heartbeat = Heartbeat(self._monotonic)
        self._server: HttpServer | None = None
        self._is_interrupted = self._is_asked_to_end = self._is_dump_wanted = False
        self._began = self._told_at = self._monotonic()

    async def follow(self) -> int:
        """Follows the cluster until the command ends, and prints the table. Returns the exit code."""
        self._serve()
        self._listen_to_signals()
        await self._following.begin(lambda: self._is_interrupted)
        gc.collect()
        gc.freeze()  # the listed objects stay alive, so the collector need not search them again
        if not self._feed.missing:
            self._heartbeat.ready()
        self._began = self._monotonic()
        snapshot = self._feed.cache.snapshot()
        ends = self._options.seconds or self._options.bindings
        say(
            f"careen follows {count_of(len(snapshot.nodes), 'node')} and {count_of(len(snapshot.placed_pods), 'pod')}; "
            f"{'the command ends by itself' if ends else 'Ctrl-C ends the command and prints the results'}",
            err=True,
        )
        while not self._is_over():
            await self._following.go_on(lambda: self._is_over() or self._is_dump_wanted)
            if self._is_dump_wanted and not self._is_over():
                await self._write_dump()
        # After SIGTERM nobody waits for a list of the whole cluster.
        if self._options.snapshot and not self._is_asked_to_end:
            await self._write_dump()
        self._print()
        return exit_code(self._shadow.tally)

    async def end(self) -> None:
        """Closes the watches and the connections."""
        await self._following.end()
        self._transport.close()
        if self._server is not None:
            self._server.close()

    def _is_over(self) -> bool:
        seconds, bindings = self._options.seconds, self._options.bindings
        return (
            self._is_interrupted
            or (seconds is not None and self._monotonic() - self._began >= seconds)
            or (bindings is not None and self._shadow.tally.compared >= bindings)
        )

    # ---- for people ----

    def _on_step(self) -> None:
        """Between two comparisons: prints progress and new disagreements."""
        self._heartbeat.expect_within(_LOOP_SECONDS, "following the cluster")
        unwatched = ", ".join(sorted(self._feed.troubles))
        self._heartbeat.hold_readiness(f"careen cannot watch {unwatched}" if unwatched else "")
        for each in self._shadow.tally.new_disagreements():
            expected, chosen = nodes_said(each), each.node or "none"
            say(
                f"{each.at} {each.pod}: scheduler_core expected {expected}, kube-scheduler chose {chosen}: {each.why}",
                err=True,
            )
        if self._monotonic() - self._told_at >= _SECONDS_PER_LINE:
            self._told_at = self._monotonic()
            say(self._progress(unwatched), err=True)

    def _progress(self, unwatched: str) -> str:
        if missing := sorted(self._feed.missing):
            error = next((f": {each}" for each in self._feed.troubles.values()), "")
            return f"careen waits for the first list of {', '.join(missing)}{error}"
        tally = self._shadow.tally
        result = f"careen compared {count_of(tally.compared, 'pod')}"
        if tally.agreement is not None:
            result = f"{result}; scheduler_core and kube-scheduler agree on {100 * tally.agreement:.1f} % of the pods"
        return f"{result}; careen cannot watch {unwatched}" if unwatched else result

    def _print(self) -> None:
        snapshot, last = self._feed.cache.snapshot(), self._options.last
        followed = Followed(
            seconds=self._monotonic() - self._began,
            nodes=len(snapshot.nodes),
            pods=len(snapshot.placed_pods),
            events=self._feed.events,
            lists=self._feed.lists,
            notes=self._notes,
        )
        tally = self._shadow.tally
        show(
            self._options.output,
            text=lambda width: shadow_text(tally, followed, last=last, width=width),
            value=lambda: shadow_json(tally, followed, last=last),
        )

    # ---- for others ----

    def _serve(self) -> None:
        options, metrics = self._options, ShadowMetrics(self._shadow.tally, self._traffic)
        self._server = serve_metrics(
            options.metrics_host, options.metrics_port, heartbeat=self._heartbeat, exposition=metrics.exposition
        )

    def _traffic(self) -> Traffic:
        sizes = self._feed.cache.sizes()
        return Traffic(
            events=self._feed.events,
            bytes=self._feed.bytes,
            lists=self._feed.lists,
            troubled=len(self._feed.troubles),
            waiting=self._shadow.waiting,
            nodes=sizes["nodes"],
            pods=sizes["pods"],
        )

    def _listen_to_signals(self) -> None:
        def interrupt() -> None:
            self._is_interrupted = True

        def end() -> None:
            self._is_interrupted = self._is_asked_to_end = True

        def want_dump() -> None:
            self._is_dump_wanted = self._options.snapshot is not None

        loop = asyncio.get_running_loop()
        # Only the main thread of a process hears signals.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
            loop.add_signal_handler(signal.SIGTERM, end)
            loop.add_signal_handler(signal.SIGUSR1, want_dump)

    async def _write_dump(self) -> None:
        self._is_dump_wanted = False
        target = self._options.snapshot
        assert target is not None, "the command writes a dump only with --snapshot"
        _, size = await write_snapshot(self._cluster, self._release, target, self._learnt)
        say(f"careen wrote the dump {target}: {size:,} bytes, compressed", err=True)

    def _learnt(self) -> Mapping[str, Any] | None:
        estimate = self._shadow.learnt
        return None if estimate is None else to_mapping(estimate, self._feed.cache.snapshot())


def _profiles(options: Options, scheduler: Scheduler) -> tuple[str, ...]:
    known = tuple(scheduler.runners)
    for name in options.profiles:
        if name not in known:
            raise BadInput(f"--profile: the configuration has no profile {name!r}; its profiles are {listed(known)}")
    return options.profiles or known
