"""`careen`: the commands, in the order of `careen --help`.

A command's file is loaded only when it is called: the agent runs on every node and must not load the libraries of
commands for people (rich, numpy, the demo's server).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from careen.cli.support.screen import SuggestingGroup, errors_fit_to_show, say


class CommandEntry(NamedTuple):
    """A command's name, where it is, and its line in the help."""

    name: str
    module: str
    attribute: str
    summary: str


# First commands that show, then commands that change, then long-running ones.
COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry(
        "status",
        "careen.cli.status",
        "status",
        "Show each node's phase, why and since when the node is in that phase, and which nodes hold a claim.",
    ),
    CommandEntry(
        "why",
        "careen.cli.why",
        "why",
        "Show why a node does not reboot: each gate's answer, and what would change the answer.",
    ),
    CommandEntry(
        "history",
        "careen.cli.history",
        "history",
        "Show past reboots: when and why each node rebooted, how long the reboot took, and how many pods moved.",
    ),
    CommandEntry(
        "forecast",
        "careen.cli.forecast",
        "forecast",
        "Forecast where each pod of a node would land if the node were drained now.",
    ),
    CommandEntry(
        "plan",
        "careen.cli.plan",
        "plan",
        "Simulate the whole roll-out, and show the order of the nodes, the pods that move, the risks and the end.",
    ),
    CommandEntry(
        "watch",
        "careen.cli.watch",
        "watch",
        "Show the roll-out on this terminal: how far it is, who is at work, and what holds nodes back.",
    ),
    CommandEntry(
        "serve", "careen.cli.serve", "serve", "Show the roll-out as a live page in a browser on this computer."
    ),
    CommandEntry(
        "explain", "careen.cli.explain", "explain", "Show each scheduler plugin's verdict on a pod for each node."
    ),
    CommandEntry(
        "why-pending",
        "careen.cli.why_pending",
        "why_pending_command",
        "Show why a pod has no node, what would give it one, and when it is tried next.",
    ),
    CommandEntry(
        "scheduler",
        "careen.cli.scheduler",
        "scheduler",
        "Schedule pods as kube-scheduler does, with plugins in Python.",
    ),
    CommandEntry(
        "shadow",
        "careen.cli.shadow",
        "shadow",
        "Compare the forecast's placements with kube-scheduler's live bindings.",
    ),
    CommandEntry(
        "snapshot", "careen.cli.snapshot", "snapshot", "Write a dump of the cluster for forecasts and bug reports."
    ),
    CommandEntry(
        "lock",
        "careen.cli.lock",
        "lock",
        "Show the lock, pause all reboots of the cluster, end the pause, or free a node's claim.",
    ),
    CommandEntry(
        "hold",
        "careen.cli.hold",
        "hold",
        "Keep nodes from rebooting, for a stated reason, until a stated time or until `careen unhold`.",
    ),
    CommandEntry("unhold", "careen.cli.hold", "unhold", "End the hold of nodes, so that they may reboot."),
    CommandEntry("retry", "careen.cli.retry", "retry", "Let nodes whose reboot failed try the reboot again."),
    CommandEntry(
        "recheck", "careen.cli.recheck", "recheck", "Make the agents of nodes ask the host and the gates again at once."
    ),
    CommandEntry(
        "reboot",
        "careen.cli.reboot",
        "reboot",
        "Request a reboot of nodes. A reboot still waits until every gate (check before a reboot) allows it.",
    ),
    CommandEntry(
        "drain",
        "careen.cli.maintenance",
        "drain",
        "Drain nodes, once every gate (check before a reboot) allows it. --end puts them back into service.",
    ),
    CommandEntry(
        "maintenance",
        "careen.cli.maintenance",
        "maintenance",
        "Drain nodes and keep them cordoned for a person's work; --end puts them back into service.",
    ),
    CommandEntry(
        "cleanup",
        "careen.cli.cleanup",
        "cleanup",
        "Remove careen's taints, labels, annotations, cordons and claims, after careen's DaemonSet is deleted.",
    ),
    CommandEntry(
        "config", "careen.cli.config", "config", "Show each setting's value, and which source sets this value."
    ),
    CommandEntry("demo", "careen.cli.demo", "demo", "Run a whole roll-out on this computer, without a cluster."),
    CommandEntry("agent", "careen.cli.agent", "agent", "Run the agent of one node; the DaemonSet starts this command."),
)
_BY_NAME = {entry.name: entry for entry in COMMANDS}


class LazyGroup(SuggestingGroup):
    """Imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        entry = _BY_NAME.get(cmd_name)
        if entry is None:
            return None
        from careen.cluster.wire.lean_imports import without_collections

        with without_collections():
            command = getattr(import_module(entry.module), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with errors_fit_to_show():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with errors_fit_to_show():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        # Click would load every command for its first line.
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.summary) for entry in COMMANDS])


def _tell_version(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        say(f"careen, version {_version()}")
        context.exit()


def _version() -> str:
    # importlib.metadata is as slow to load as click itself, and only --version needs it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("careen")
    except PackageNotFoundError:
        return "not installed"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
@click.option(
    "--context",
    metavar="NAME",
    help="The context of the kubeconfig, for any command that asks a cluster; the same option after the command wins.",
)
@click.pass_context
def cli(click_context: click.Context, context: str | None) -> None:
    """Reboot the nodes of a Kubernetes cluster one by one, and forecast where every pod will land."""
    name = click_context.invoked_subcommand
    if context is None or name is None:
        return
    command = cli.get_command(click_context, name)
    is_taken = isinstance(command, click.Group) or (
        command is not None and any(each.name == "context" for each in command.params)
    )
    if not is_taken:
        raise click.UsageError(f"`careen {name}` asks no cluster by a kubeconfig's context; leave out --context")


def main(arguments: Sequence[str] | None = None) -> None:
    """The console scripts `careen` and `kubectl-careen`. Never returns."""
    called_as = Path(sys.argv[0]).name
    cli.main(
        list(arguments) if arguments is not None else None,
        prog_name="kubectl careen" if called_as.startswith("kubectl-careen") else "careen",
    )
