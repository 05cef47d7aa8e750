"""`careen scheduler`: schedules pods."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import click

from careen.agent.clock import SystemClock
from careen.agent.telemetry.http_server import Heartbeat, HttpServer
from careen.cli.serving.metrics_server import serve_metrics
from careen.cli.serving.questions import Questions
from careen.cli.support.connection import kubeconfig_file
from careen.cli.support.files import text_of, why
from careen.cli.support.options import metrics_options
from careen.cli.support.screen import BadInput, say
from careen.cluster.snapshot_reader import server_version
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import CannotReachCluster, ServerAccess, connect, user_agent
from careen.cluster.wire.errors import ClusterError
from careen.scheduler.measures import Measures
from careen.scheduler.metrics import SchedulerMetrics
from careen.scheduler.plugins.beside import Beside
from careen.scheduler.plugins.loading import PluginError, installed_plugins, plugins_of, usable
from careen.scheduler.scheduler import Process, RunningScheduler
from careen.scheduler.settings import BY_DEFAULT, ProcessSettings, doubt, process_settings
from careen.scheduler.wire.server import Server
from careen.settings import yaml_text
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.config.kube_version import KubeVersion, UnsupportedKubeVersionError
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.asked_ahead import AskedAhead
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.extenders.transport import HttpTransport
from scheduler_core.framework.plugin_set import DuplicatePluginError, Factory
from scheduler_core.running.waiting.permits import WaitingPods


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A KubeSchedulerConfiguration. The default schedules the pods with `schedulerName: careen-scheduler`.",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="NAME=FILE.py:FACTORY",
    help="A plugin in Python: the factory in this file, or in an installed module (NAME=MODULE:FACTORY). Repeatable; a "
    "profile of the configuration must enable NAME.",
)
@click.option("--kubeconfig", envvar="KUBECONFIG", metavar="FILE", help="The kubeconfig; inside a pod not needed.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option(
    "--identity", metavar="NAME", help="This process in the Lease and in Events; the default is the host's name."
)
@metrics_options
@click.option(
    "--why-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Answer `careen why-pending` on this port of 127.0.0.1, which `kubectl port-forward` reaches.",
)
@click.option(
    "-v",
    "verbosity",
    type=click.IntRange(0, 10),
    default=2,
    show_default=True,
    metavar="N",
    help="2 logs each binding and refusal, 3 each attempt as well.",
)
def scheduler(
    config: Path | None,
    *,
    plugins: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    identity: str | None,
    metrics_host: str,
    metrics_port: int | None,
    why_port: int | None,
    verbosity: int,
) -> None:
    """Schedule pods as kube-scheduler does, with plugins in Python.

    The command schedules the pods whose schedulerName is that of a profile in --config. Several may run: the holder of
    the Lease schedules, and the others wait. It ends on SIGTERM; exit code 1 if it loses the Lease.
    """
    configuration, settings = _read(config)
    try:
        factories = {**installed_plugins(), **plugins_of(plugins)}
    except ValueError as error:
        raise BadInput(str(error)) from error
    file = kubeconfig_file(kubeconfig or settings.kubeconfig or None)
    clock = SystemClock()
    metrics = SchedulerMetrics(Measures(clock=clock.monotonic, chance=random.random))
    heartbeat = Heartbeat(clock.monotonic)
    try:
        access = ServerAccess(file, context=context)
        server = Server(access, agent=user_agent("scheduler"), monotonic=clock.monotonic)
    except (CannotReachCluster, ValueError) as error:
        raise BadInput(str(error)) from error

    def new_client() -> ClusterApi:
        return ClusterApi(connect(file, part="scheduler", context=context, connections=4), clock, chance=random.random)

    process = Process(
        me=f"{identity or socket.gethostname()}_{os.getpid()}",
        server=server,
        clock=clock,
        connect=new_client,
        chance=random.random,
        say=say,
        leave=_leave,
        health=heartbeat,
        verbosity=verbosity,
    )
    serve_metrics(metrics_host, metrics_port, heartbeat=heartbeat, exposition=metrics.exposition)
    if said := doubt(configuration, settings):
        say(f"Note: {said}.", err=True)
    questions = Questions()
    if why_port is not None:
        _answer_on(why_port, questions, heartbeat)
    _on_a_loop(
        lambda: _run(configuration, settings, process, metrics=metrics, factories=factories, questions=questions)
    )


def _answer_on(port: int, questions: Questions, heartbeat: Heartbeat) -> None:
    pages = {"/why-pending": questions.why_pending}
    try:
        HttpServer("127.0.0.1", port, heartbeat=heartbeat, exposition=bytes, pages=pages)
    except OSError as error:
        raise BadInput(f"--why-port {port} cannot be used: {why(error)}") from error


async def _run(
    configuration: Configuration,
    settings: ProcessSettings,
    process: Process,
    *,
    metrics: SchedulerMetrics,
    factories: Mapping[str, Factory],
    questions: Questions,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    version = await _release(process)
    ahead, beside, permits = AskedAhead(HttpTransport), Beside(process.clock.monotonic), WaitingPods()
    plugins = {name: beside.guarded(usable(name, factory, permits)) for name, factory in factories.items()}
    scheduler = _scheduler(configuration, version, plugins, process, ahead)
    running = RunningScheduler(
        scheduler,
        settings,
        process,
        metrics=metrics,
        permits=permits,
        ahead=ahead,
        beside=beside,
    )
    questions.use(running)
    await running.run(stop)


async def _release(process: Process) -> KubeVersion:
    """The API server's. Rules of another release would be wrong decisions."""
    try:
        said = await server_version(process.connect())
    except ClusterError as error:
        raise click.ClickException(f"the API server did not say its release: {error}; try again") from error
    try:
        return KubeVersion.parse(said)
    except UnsupportedKubeVersionError as error:
        raise BadInput(f"the API server's release {said}: {error}") from error


def _scheduler(
    configuration: Configuration,
    version: KubeVersion,
    factories: Mapping[str, Factory],
    process: Process,
    ahead: AskedAhead,
) -> Scheduler:
    try:
        return Scheduler(
            configuration,
            version,
            plugins=factories,
            transport=ahead.transport,
            clock=lambda: process.clock.now().timestamp(),
        )
    except PluginError as error:
        raise BadInput(str(error)) from error
    except (DuplicatePluginError, TypeError) as error:  # a plugin with the name of another, or with other parameters
        raise BadInput(f"--plugin: {error}") from error
    except (ConfigurationError, ExtenderError) as error:
        raise BadInput(f"--config: {error}") from error


def _read(path: Path | None) -> tuple[Configuration, ProcessSettings]:
    mapping: Any = BY_DEFAULT
    try:
        if path is not None:
            mapping = yaml_text.load(text_of(path, "--config"))
        configuration = Configuration.from_mapping(mapping)
        return configuration, process_settings(mapping, configuration)
    except (ConfigurationError, yaml_text.BadYaml) as error:
        raise BadInput(f"--config {path}: {error}") from error


def _leave(why: str) -> None:
    say(why, err=True)
    os._exit(1)


def _on_a_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On uvloop, where it is installed: it needs a third less processor time."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        asyncio.run(main())
    else:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())
