"""`careen serve`: the roll-out as a live web page on this computer."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from careen.cli.serving.guard import is_loopback
from careen.cli.serving.live_source import LiveSource
from careen.cli.serving.web_server import WebServer
from careen.cli.support.files import why
from careen.cli.support.options import Connection, connection_options
from careen.cli.support.screen import BadInput, say
from careen.host import environment
from careen.report.live.planned import Planned, planned_of

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster
    from careen.report.live.rollout_document import Seen

PORT: Final = 8040
_MOST_PLAN_BYTES = 256 * 1024 * 1024


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    metavar="PORT",
    help="The port of the page; 0 means any free port.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The loopback address of the page: 127.0.0.1, ::1 or localhost. Others are refused, because the page has no "
    "login.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the roll-out over this plan, written by `careen plan -o json`. The default is a plan of the waiting "
    "nodes, simulated when the command starts.",
)
@click.option("--no-plan", is_flag=True, help="Simulate no plan: the page shows what happens, not what was to happen.")
@connection_options
def serve(connection: Connection, *, port: int, host: str, plan_file: Path | None, no_plan: bool) -> None:
    """Show the roll-out as a live page in a browser on this computer: progress by zone over its plan, the nodes by zone
    and phase, what holds them back, and for each node its gates, forecast and history. /report lists the reboots of
    the last month, /report.json the same for programs.

    The page changes nothing. It has no login, so it listens on the loopback interface only; in a cluster, reach it by
    `kubectl port-forward`. The command reads the cluster only while a page is open, and runs until it is interrupted.
    """
    if not is_loopback(host):
        raise BadInput(
            f"--host {host} is not a loopback address: the page has no login, so everybody who reaches this computer "
            "could read it; use `ssh -L` or `kubectl port-forward` to reach the page from elsewhere"
        )
    if plan_file and no_plan:
        raise click.UsageError("give either --plan or --no-plan, not both")
    given = _plan_from(plan_file) if plan_file else None
    connection.ask(lambda cluster: _run(cluster, connection, given, host=host, port=port, simulates=not no_plan))


def _plan_from(path: Path) -> Planned:
    try:
        found = planned_of(json.loads(path.read_bytes()[:_MOST_PLAN_BYTES]))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"--plan {path} cannot be read: {why(error) if isinstance(error, OSError) else error}"
        ) from error
    if found is None:
        raise BadInput(f"--plan {path} is not a plan: write one with `careen plan -o json > {path}`")
    return found


async def _run(
    cluster: Cluster, connection: Connection, given: Planned | None, *, host: str, port: int, simulates: bool
) -> None:
    async def planner(_seen: Seen) -> Planned:
        if given is not None or not simulates:
            return given or Planned(note="This page shows no plan, as --no-plan says.")
        return await simulated(connection)

    source = LiveSource(cluster, planner=planner)
    try:
        server = WebServer(host, port, source)
    except OSError as error:
        raise BadInput(f"--port {port} cannot be used: {why(error)}; choose another port with --port") from error
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    say(f"The page is http://{shown}:{server.port}/ - on this computer only, because it has no login; Ctrl-C ends it")
    looking = asyncio.ensure_future(source.run())
    loop = asyncio.get_running_loop()
    # Only the main thread of a process hears signals.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, looking.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await looking
    finally:
        server.close()


async def simulated(connection: Connection) -> Planned:
    """A plan of the waiting nodes, in a process of its own: a simulation of 5,000 nodes takes a gigabyte and two
    minutes of one core, and would stop the page for as long."""
    options = {
        "--kubeconfig": connection.kubeconfig,
        "--context": connection.context,
        "--ds-namespace": connection.namespace,
        "--ds-name": connection.name,
        "--lock-annotation": connection.annotation,
    }
    words = [word for name, value in options.items() if value for word in (name, value)]
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "careen", "plan", "--waiting", "--seeds", "1", "-o", "json", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment.of_children(),
        )
    except OSError as error:
        return _failed(why(error))
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        found = planned_of(json.loads(output))
    except ValueError:
        found = None
    if found is None:
        return _failed((errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1])
    return found


def _failed(because: str) -> Planned:
    return Planned(note=f"There is no plan to compare with, because the simulation failed: {because}", is_failed=True)
