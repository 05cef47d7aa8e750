"""The options that commands share, and the printing of results. `connection.py` connects to the cluster; a command with
--from sends no request, so it does not load the client."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from careen.cli.support.screen import say_lines
from careen.core.facts import keys
from careen.report.tables import as_json
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster

T = TypeVar("T")


class Connection(Value, kw_only=True):
    """How to reach the cluster; opened for the first request."""

    kubeconfig: str | None
    context: str | None
    namespace: str | None  # None: looked for
    name: str | None
    annotation: str

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        """Calls `question` with a client. An error ends the command with a message."""
        from careen.cli.support.connection import ask

        return ask(
            question,
            kubeconfig=self.kubeconfig,
            context=self.context,
            namespace=self.namespace,
            name=self.name,
            annotation=self.annotation,
        )


def cluster_command(function: Callable[..., Awaitable[T]]) -> Callable[..., T]:
    """Adds the connection options; the command's first argument is an open `Cluster`."""

    @connection_options
    @functools.wraps(function)
    def command(connection: Connection, **given: Any) -> T:
        return connection.ask(lambda cluster: function(cluster, **given))

    return command


def connection_options(function: Callable[..., T]) -> Callable[..., T]:
    """Adds the connection options; the command's first argument is a `Connection`, for commands that can do without a
    cluster."""

    @click.option(
        "--kubeconfig",
        envvar="KUBECONFIG",
        metavar="FILE",
        help="The kubeconfig to use; the default is ~/.kube/config, and inside a pod the service account of the pod.",
    )
    @click.option(
        "--context",
        metavar="NAME",
        help="The context of the kubeconfig; the default is the kubeconfig's current context.",
    )
    @click.option(
        "--ds-namespace",
        callback=_checked("ds_namespace"),
        envvar=["CAREEN_DS_NAMESPACE", "KURED_DS_NAMESPACE"],
        metavar="NAMESPACE",
        help="The namespace of the DaemonSet that carries the lock; by default the command looks for DaemonSet "
        "careen/careen, then for kube-system/kured.",
    )
    @click.option(
        "--ds-name",
        callback=_checked("ds_name"),
        envvar=["CAREEN_DS_NAME", "KURED_DS_NAME"],
        metavar="NAME",
        help="The name of the DaemonSet that carries the lock.",
    )
    @click.option(
        "--lock-annotation",
        callback=_checked("lock_annotation"),
        default=keys.LOCK_ANNOTATION,
        show_default=True,
        envvar=["CAREEN_LOCK_ANNOTATION", "KURED_LOCK_ANNOTATION"],
        metavar="KEY",
        help="The annotation that contains the lock.",
    )
    @functools.wraps(function)
    def command(
        *,
        kubeconfig: str | None,
        context: str | None,
        ds_namespace: str | None,
        ds_name: str | None,
        lock_annotation: str,
        **given: Any,
    ) -> T:
        connection = Connection(
            kubeconfig=kubeconfig,
            context=context or click.get_current_context().find_root().params.get("context"),
            namespace=ds_namespace,
            name=ds_name,
            annotation=lock_annotation,
        )
        return function(connection, **given)

    return command


def _checked(setting: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Checks the option with the agents' own parser before any request."""

    def check(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is None or value == parameter.default:
            return value
        from careen.settings.tree import SETTINGS  # the whole tree, for an option that is seldom given

        try:
            return str(SETTINGS[setting].kind.parse(value))
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from error

    return check


_OUTPUT_HELP = "The output format: a table for people, or JSON or YAML for programs."


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--output table|json|yaml`."""
    return _output(_OUTPUT_HELP)(command)


def nodes_output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--output table|wide|name|json|yaml`, for a command whose rows are nodes."""
    help_text = f"{_OUTPUT_HELP} wide: more columns; name: a line `node/NAME` for each node, as kubectl prints it."
    return _output(help_text, "wide", "name")(command)


def _output(help_text: str, *more: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    formats = ["table", *more, "json", "yaml"]
    return click.option(
        "--output", "-o", type=click.Choice(formats), default="table", show_default=True, help=help_text
    )


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def dump_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--from FILE`, the command's argument `dump`."""
    return click.option(
        "--from", "dump", type=_FILE, metavar="FILE", help="Read this dump of `careen snapshot` instead of a cluster."
    )(command)


def scheduler_config_option(*, otherwise: str = "kube-scheduler's default profile") -> Callable[..., Any]:
    """Adds `--scheduler-config FILE`. `otherwise`, what is used without it, ends the help text."""
    about = (
        f"The KubeSchedulerConfiguration of the cluster's scheduler; without this option, the command uses {otherwise}."
    )
    return click.option("--scheduler-config", type=_FILE, metavar="FILE", help=about)


def metrics_options(function: Callable[..., T]) -> Callable[..., T]:
    """Adds `--metrics-host` and `--metrics-port`, for `cli/serving/metrics_server.py`."""
    function = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="The port for /metrics, /healthz and /readyz; 0 means any free port.",
    )(function)
    return click.option(
        "--metrics-host",
        default="",
        metavar="HOST",
        help="The address on which --metrics-port listens; the default is all addresses.",
    )(function)


def show(output: str, *, text: Callable[[int | None], str], value: Callable[[], Any]) -> None:
    """Prints table, JSON or YAML. `text` gets the terminal's columns, None without a terminal."""
    say_lines(_for_programs(output, value()) if output in ("json", "yaml") else text(_terminal_width()))


def _for_programs(output: str, value: Any) -> str:
    if output == "json":
        return as_json(value)
    from careen.report.programs.yaml_text import as_yaml

    return as_yaml(value)


def _terminal_width() -> int | None:
    """None without a terminal: lines are not folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
