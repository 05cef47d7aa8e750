"""`careen demo`: a whole roll-out on this computer, without a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from careen.cli.support.files import try_folder, why
from careen.cli.support.screen import say, say_lines
from scheduler_core.sentences import count_of

if TYPE_CHECKING:
    from drydock.rollout.progress_report import RolloutProgress
    from drydock.rollout.rollout import Rollout, RolloutPlan, RolloutVerdict

# The demo's agents need about eight seconds per node; the rest is for slow computers.
_PATIENCE_SECONDS = 60.0
_PATIENCE_SECONDS_A_NODE = 30.0
# A rogue may block a node forever; the demo must detect this while a person still watches.
_PATIENCE_SECONDS_WITH_A_ROGUE = 60.0
# With faults an agent may be dead or disconnected when the need appears; the ten seconds hold for one that runs and
# gets answers.
_TAINT_SECONDS, _TAINT_SECONDS_WITH_FAULTS = 10.0, 25.0
_BREACHES_SHOWN = 3


def _need_embedded_cluster() -> None:
    """Image and wheel do not contain the embedded cluster."""
    if find_spec("drydock") is None:
        raise click.UsageError(
            "this installation of careen does not contain the demo's embedded cluster, which is part of careen's "
            "source: run `make demo` in a checkout"
        )


def _rule(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    if value is None:
        return ""
    _need_embedded_cluster()
    from drydock.hosts.rogues import ROGUES

    if value not in ROGUES:
        raise click.BadParameter(f"there is no rule {value!r}; the demo can break {', '.join(ROGUES)}")
    return value


class _NoVerdict(click.ClickException):
    """Exit code 4 means unknown, as for `careen forecast`; 1 would mean that a rule was broken."""

    exit_code = 4


@click.command()
@click.option(
    "--nodes",
    type=click.IntRange(1, 200),
    default=12,
    show_default=True,
    help="The number of nodes. Each node has its own agent process.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="The random seed for boot ids, timings, faults, and the scheduler's choice between equal nodes.",
)
@click.option(
    "--concurrency", type=click.IntRange(1), default=2, show_default=True, help="How many nodes may be down at once."
)
@click.option(
    "--faults",
    is_flag=True,
    help="Inject faults: the API server loses answers, rejects requests and fails for a while; agents are killed.",
)
@click.option(
    "--workloads",
    type=click.Choice(["polite", "zoo"]),
    default="polite",
    show_default=True,
    help="`zoo` adds imitations of operators and webhooks that users have beside careen, such as Rook and Strimzi, and "
    "a Prometheus with alerts.",
)
@click.option(
    "--scheduler",
    "has_scheduler",
    is_flag=True,
    help="Let `careen scheduler` schedule the pods, in a process of its own. --keep keeps its log.",
)
@click.option(
    "--break",
    "broken_rule",
    metavar="RULE",
    callback=_rule,
    help="Make an agent break the rule RULE, to check that the judge detects the breach (exit code 1).",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Start the cluster without a roll-out and keep the cluster running for kubectl; Ctrl-C ends the demo.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the API server on 127.0.0.1; 0 means any free port.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the agents' logs, the hosts' files and the API server's requests and changes in this folder.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    help="The time limit of the whole roll-out in seconds. Without this option, the demo limits the time from each "
    "reboot to the next; this limit grows with the number of nodes, and is longer on a busy computer.",
)
@click.option(
    "--plain", is_flag=True, help="Print lines instead of a live table. Without a terminal, lines are the default."
)
def demo(
    *,
    nodes: int,
    seed: int,
    concurrency: int,
    faults: bool,
    workloads: str,
    has_scheduler: bool,
    broken_rule: str,
    serve: bool,
    port: int,
    keep: Path | None,
    patience: float | None,
    plain: bool,
) -> None:
    """Reboot every node of an embedded cluster with real agents, while a judge checks the rules.

    Exit code 0: every rule held. 1: a rule was broken. 4: no verdict, because the cluster or an agent did not start, a
    part of the demo failed, or the files of --keep could not be written; the message says which and why. 130: stopped
    by Ctrl-C. Try `careen demo --serve` to look around with kubectl."""
    _need_embedded_cluster()
    from drydock.rollout.cluster import PartDied
    from drydock.rollout.patience import GaveUp
    from drydock.rollout.rollout import RolloutPlan
    from drydock.zoo import IN_THE_DEMO

    plan = RolloutPlan(
        nodes=nodes,
        seed=seed,
        concurrency=concurrency,
        has_faults=faults,
        broken_rule=broken_rule,
        has_scheduler=has_scheduler,
        citizens=IN_THE_DEMO if workloads == "zoo" else (),
        port=port,
        taint_seconds=_TAINT_SECONDS_WITH_FAULTS if faults else _TAINT_SECONDS,
        patience_seconds=_default_patience(nodes, broken_rule) if patience is None else patience,
        is_patience_exact=patience is not None,
    )
    with contextlib.ExitStack() as stack:
        folder = keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="careen-demo-", ignore_cleanup_errors=True))
        )
        _make(folder)
        try:
            code = asyncio.run(_until_stopped(plan, folder, serve=serve, plain=plain, is_kept=keep is not None))
        except GaveUp as error:
            raise _NoVerdict(f"the demo gives no verdict about this run: {error}") from error
        except PartDied as error:
            raise _NoVerdict(f"{error}; the demo gives no verdict about this run") from error
        except OSError as error:
            if error.filename is not None:
                raise _NoVerdict(
                    f"the demo cannot write {error.filename}: {why(error)}; the demo gives no verdict about this run"
                ) from error
            if not port or error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
            raise _NoVerdict(
                f"port {port} of 127.0.0.1 cannot be used: {os.strerror(error.errno)}; leave out --port to "
                "use any free port"
            ) from error
    sys.exit(code)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder} cannot be created: {error.strerror}", param_hint="--keep") from error
    try:
        try_folder(folder)
    except OSError as error:
        raise click.BadParameter(f"{folder} cannot be written to: {why(error)}", param_hint="--keep") from error


def _default_patience(nodes: int, broken_rule: str) -> float:
    return _PATIENCE_SECONDS_WITH_A_ROGUE if broken_rule else _PATIENCE_SECONDS + _PATIENCE_SECONDS_A_NODE * nodes


async def _until_stopped(plan: RolloutPlan, folder: Path, *, serve: bool, plain: bool, is_kept: bool) -> int:
    """After Ctrl-C or SIGTERM cleans up and ends with exit code 130."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await _run(plan, folder, serve=serve, plain=plain, is_kept=is_kept)
    except asyncio.CancelledError:
        say("the demo was stopped; the agents and the API server have ended", err=True)
        return 130


async def _run(plan: RolloutPlan, folder: Path, *, serve: bool, plain: bool, is_kept: bool) -> int:
    from drydock.rollout.rollout import running_rollout

    async with running_rollout(plan, folder) as rollout:
        size = f"{plan.nodes} nodes and {plan.nodes} agents" if plan.has_agents else f"{plan.nodes} nodes"
        say(f"An embedded cluster of {size} is starting at {rollout.cluster.api.url}.")
        await rollout.set_up()
        if serve:
            return await _serve(rollout, folder)
        with _shown(plain=plain) as show:
            verdict = await rollout.run(show)
        not_kept = _keep_evidence(rollout, folder) if is_kept else ""
        _tell(verdict)
        if not_kept:
            say(f"Error: {not_kept}", err=True)
        return 1 if verdict.broken else _NoVerdict.exit_code if not_kept else 0


async def _serve(rollout: Rollout, folder: Path) -> int:
    from drydock.rollout.kubeconfig import write_kubeconfig

    config = write_kubeconfig(folder / "kubeconfig", rollout.cluster.api.url)
    host = next(iter(rollout.cluster.hosts.by_name.values()))
    say_lines(
        f"\nThe cluster is up. Run these commands in another terminal:\n\n    export KUBECONFIG={config}\n"
        "    kubectl get nodes\n    careen status\n"
        f"    touch {host.root.parent}/{host.name}/var/run/reboot-required    # now {host.name} needs a reboot\n\n"
        "Ctrl-C ends the demo."
    )
    assert rollout.cluster.failure is not None, "`cluster.failure` is None, although the embedded cluster runs"
    await asyncio.shield(rollout.cluster.failure)
    return 0


@contextlib.contextmanager
def _shown(*, plain: bool) -> Iterator[Callable[[RolloutProgress], None]]:
    from drydock.rollout.view import line_printer, live_table

    if plain or not sys.stdout.isatty():
        yield line_printer(sys.stdout)
        return
    from rich.console import Console

    live, show = live_table(Console())
    with live:
        yield show


def _keep_evidence(rollout: Rollout, folder: Path) -> str:
    """Writes the API server's requests and the changes of its objects. An error is returned as a sentence, so that the
    verdict can still be printed."""
    from drydock.server.audit import journal_line

    try:
        with (folder / "requests.jsonl").open("w") as file:
            file.writelines(record.as_line() + "\n" for record in rollout.cluster.api.requests)
        with (folder / "journal.jsonl").open("w") as file:
            file.writelines(journal_line(change) + "\n" for change in rollout.cluster.api.store.journal)
    except OSError as error:
        return f"the evidence could not be written to {folder}: {why(error)}"
    return ""


def _tell(verdict: RolloutVerdict) -> None:
    for name, codes in sorted(verdict.crashes.items()):
        say(f"the agent of {name} exited unexpectedly with code {', '.join(map(str, codes))}")
    for broken in verdict.broken:
        say_lines(f"\nBROKEN: {broken.rule.sentence} ({broken.rule.name})")
        for breach in broken.breaches[:_BREACHES_SHOWN]:
            say(f"    {breach.sentence}")
        if len(broken.breaches) > _BREACHES_SHOWN:
            more = len(broken.breaches) - _BREACHES_SHOWN
            say(f"    the judge found {count_of(more, 'more breach', 'more breaches')} of this rule")
    width = shutil.get_terminal_size().columns
    say("-" * min(width, 100))
    say(f"the cluster was set up in {verdict.setup_seconds:.0f} s; the agents sent {verdict.requests} API requests")
    say(verdict.sentence)
