"""How a command for people reaches the cluster: the options they share, and what they say when it cannot be reached.

Exit codes: 2 for what the caller wrote wrongly, 1 for what the cluster refused or did not answer.
"""

from __future__ import annotations

import asyncio
import difflib
import errno
import functools
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from careen.agent import settings_kinds as kinds
from careen.agent.clock import SystemClock
from careen.agent.settings import DEFAULTS
from careen.cli import lock_place
from careen.cluster.api import ApiServer
from careen.cluster.errors import ClusterError, Forbidden, NotFound, NotSent, Unauthorized
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import list_nodes, patch_node, read_node
from careen.cluster.writes import Landed, Stale, StillUnclear
from careen.core import lock
from careen.core.actions import PatchNode
from careen.core.observation import Gone, LockReading, NodeView, Unknown
from careen.report.lock_report import LockState
from careen.report.tables import as_json, count_of, listed

T = TypeVar("T")

# The kubelet changes a Node and every claim changes the lock; a person's word should get through all the same.
TRIES = 5

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster to ask, and where careen's lock lies in it."""

    api: ApiServer
    clock: SystemClock
    kubeconfig: str
    """The file in use; empty for the service account of the pod we are in."""
    context: str
    """Of the kubeconfig; empty for its current one."""
    namespace: str
    name: str
    annotation: str

    @property
    def lock(self) -> LockStore:
        """The lock annotation on careen's DaemonSet."""
        return LockStore(self.api, namespace=self.namespace, name=self.name, annotation=self.annotation)

    @property
    def lock_title(self) -> str:
        """`DaemonSet careen/careen`, for sentences."""
        return f"DaemonSet {self.namespace}/{self.name}"


def cluster_command(function: Callable[..., Awaitable[T]]) -> Callable[..., T]:
    """Gives a command the shared options and runs it with an open `Cluster` as its first argument."""

    @connection_options
    @functools.wraps(function)
    def command(connection: Connection, **given: Any) -> T:
        return connection.ask(lambda cluster: function(cluster, **given))

    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the cluster would be reached; nothing is opened before a question is asked."""

    kubeconfig: str | None
    context: str | None
    namespace: str | None            # None: looked for
    name: str | None
    annotation: str

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        """The answer of one question to the cluster; trouble on the way ends the command with a sentence."""
        file = _kubeconfig(self.kubeconfig)
        transport = _connect(file, self.context)
        clock = SystemClock()
        # One person's command needs no jitter.
        api = ApiServer(transport, clock, chance=lambda: 0.0)

        async def find_and_ask() -> T:
            namespace, name = await lock_place.find(api, namespace=self.namespace, name=self.name, annotation=self.annotation)
            return await question(Cluster(
                api=api, clock=clock, kubeconfig=str(file or ""), context=self.context or "", namespace=namespace, name=name, annotation=self.annotation,
            ))

        try:
            return asyncio.run(_answered(find_and_ask()))
        finally:
            transport.close()


def connection_options(function: Callable[..., T]) -> Callable[..., T]:
    """Gives a command the shared options, as a `Connection` in its first argument; for commands that can do without a cluster."""

    @click.option("--kubeconfig", envvar="KUBECONFIG", metavar="FILE", help="The kubeconfig to use; otherwise ~/.kube/config, and inside a pod its service account.")
    @click.option("--context", metavar="NAME", help="The context of the kubeconfig; otherwise its current one.")
    @click.option("--ds-namespace", callback=_checked(kinds.NAMESPACE), envvar=["CAREEN_DS_NAMESPACE", "KURED_DS_NAMESPACE"], metavar="NAMESPACE", help="Namespace of the DaemonSet that carries the lock; otherwise careen/careen is looked for, then kube-system/kured.")
    @click.option("--ds-name", callback=_checked(kinds.NEEDED_NAME), envvar=["CAREEN_DS_NAME", "KURED_DS_NAME"], metavar="NAME", help="Name of the DaemonSet that carries the lock.")
    @click.option("--lock-annotation", callback=_checked(kinds.ANNOTATION), default=DEFAULTS["lock_annotation"], show_default=True, envvar=["CAREEN_LOCK_ANNOTATION", "KURED_LOCK_ANNOTATION"], metavar="KEY", help="The annotation that is the lock.")
    @functools.wraps(function)
    def command(*, kubeconfig: str | None, context: str | None, ds_namespace: str | None, ds_name: str | None, lock_annotation: str, **given: Any) -> T:
        connection = Connection(kubeconfig=kubeconfig, context=context, namespace=ds_namespace, name=ds_name, annotation=lock_annotation)
        return function(connection, **given)

    return command


def _checked(kind: kinds.Kind) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """The agents' own parser, so that a name that no object can have is refused before anybody is asked for it."""

    def check(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else str(kind.parse(value))
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from error

    return check


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--output table|json`."""
    return click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True, help="A table for people, or JSON for programs.")(command)


def show(output: str, *, text: Callable[[int | None], str], value: Callable[[], Any]) -> None:
    """Prints one of the two forms; `text` gets the terminal's width, or None where nobody's terminal would be too narrow."""
    click.echo(as_json(value()) if output == "json" else text(terminal_width()))


def terminal_width() -> int | None:
    """Columns of the terminal on standard output; None when it is none: then lines are not folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _connect(kubeconfig: Path | None, context: str | None) -> Any:
    # Half a second of a command that is given a dump and asks no cluster.
    from careen.cluster.client import CannotReachCluster, connect

    try:
        return connect(kubeconfig, part="cli", context=context)
    except CannotReachCluster as error:
        raise click.UsageError(str(error)) from error


def _kubeconfig(given: str | None) -> Path | None:
    """The file to use; None for the service account of the pod we are in. KUBECONFIG may name several, as kubectl takes them."""
    if given:
        return Path(given)
    own = Path.home() / ".kube" / "config"
    if own.exists():
        return own
    if SERVICE_ACCOUNT.exists():
        return None
    raise click.UsageError(f"no cluster to ask: {own} does not exist and this is no pod; give --kubeconfig FILE or set KUBECONFIG")


async def _answered(question: Awaitable[T]) -> T:
    """The answer, or one sentence for a person: what went wrong, where, and what to do."""
    try:
        return await question
    except NotSent as error:
        raise click.ClickException(f"the API server cannot be reached: {error}; check the server's address in the kubeconfig") from error
    except Unauthorized as error:
        raise click.ClickException(f"the API server does not accept these credentials: {error}; log in again, or choose another --context") from error
    except Forbidden as error:
        raise click.ClickException(f"a right is missing: {error.message or error}; ask whoever runs the cluster, or choose another --context") from error
    except ClusterError as error:
        raise click.ClickException(f"the API server did not answer: {error}; try again") from error
    except OSError as error:
        # A reader that closed its end, as `head` does, is click's to end in silence.
        if error.errno is None or error.errno == errno.EPIPE:
            raise
        raise click.ClickException(f"cannot write {error.filename or 'the answer'}: {error.strerror}") from error


async def read_lock(cluster: Cluster) -> LockReading:
    """The lock as it stands. Ends the command with a sentence when the DaemonSet is not there."""
    try:
        return await cluster.lock.read()
    except NotFound as error:
        raise click.ClickException(f"{cluster.lock_title} does not exist, and it is what carries the lock; name it with --ds-namespace and --ds-name") from error


async def look_at_lock(cluster: Cluster) -> tuple[LockState, str | None]:
    """The lock for a report that goes on without it, and the annotation as it stands."""
    try:
        reading = await cluster.lock.read()
    except NotFound:
        return Unknown(f"{cluster.lock_title} does not exist; name it with --ds-namespace and --ds-name"), None
    except ClusterError as error:
        return Unknown(str(error)), None
    return lock.parse(reading.content), reading.content


async def read_node_or_fail(cluster: Cluster, name: str) -> NodeView:
    """The Node of that name. A name that no Node has is the caller's mistake: exit code 2, and the names that are close."""
    node = await read_node(cluster.api, name)
    # `` and `.` are paths of other things, and what the server answers there is not refused as a Node.
    if name and not isinstance(node, Gone) and node.name == name:
        return node
    names = [each.name for each in await list_nodes(cluster.api)]
    close = difflib.get_close_matches(name, names, n=3)
    hint = f"; did you mean {listed(close)}?" if close else f" among the {count_of(len(names), 'Node')} of this cluster"
    raise click.UsageError(f"there is no Node {name!r}{hint}")


async def annotate_node(cluster: Cluster, name: str, purpose: str, change: Callable[[NodeView], dict[str, str | None]]) -> NodeView:
    """Sets or removes (None) annotations of a Node; `change` sees what it is about to overwrite. Returns the Node as it stands then."""
    for _ in range(TRIES):
        seen = await read_node_or_fail(cluster, name)
        outcome = await patch_node(cluster.api, name, PatchNode(purpose=purpose, resource_version=seen.resource_version, annotations=change(seen)))
        if isinstance(outcome, Landed):
            return outcome.seen
        if isinstance(outcome, StillUnclear):
            raise click.ClickException(f"it is not known whether the Node was changed: {outcome.why}; look with `careen why {name}`")
        if not isinstance(outcome, Stale):
            raise click.ClickException(f"the Node was not changed: {outcome.why}")
    raise click.ClickException(f"the Node changed {TRIES} times while it was being written; nothing was changed, try again")
