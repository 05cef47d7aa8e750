"""Connects a command to the cluster, and explains why that fails. The options are in `options.py`.

Exit code 2: the caller made a mistake. 1: the cluster refused or did not answer.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from careen.agent.clock import SystemClock
from careen.cli.support import lock_place
from careen.cli.support.screen import BadInput, did_you_mean, no_such_node
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import list_nodes, patch_node, read_node
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, Forbidden, NotFound, NotSent, Unauthorized
from careen.cluster.wire.lean_imports import load_lean_client
from careen.cluster.wire.writes import Landed, Stale, StillUnclear
from careen.core.actions import PatchNode
from careen.core.facts.observation import Gone, NodeView, Unknown
from careen.core.lock.reading import LockReading
from careen.report.lock_report import LockState
from careen.report.tables import listed
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.cluster.wire.client import ClientTransport, NoSuchContext

T = TypeVar("T")

# The kubelet often changes its Node, and every claim changes the lock. A person's command should succeed nevertheless.
TRIES = 5

# One connection for each kind of object, and one for lists.
_MOST_WATCHES = 32

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class Cluster(Value, kw_only=True):
    """A client of a cluster, and the place of its lock."""

    api: ClusterApi
    clock: SystemClock
    kubeconfig: str
    """The kubeconfig in use; empty for the service account of the command's pod."""
    context: str
    """The value of --context; empty for the kubeconfig's current context."""
    namespace: str
    name: str
    annotation: str
    server: str = ""

    @property
    def context_in_use(self) -> str:
        """Empty without a kubeconfig or a current context."""
        if self.context or not self.kubeconfig:
            return self.context
        from careen.cluster.wire.client import current_context  # loads the client, which most commands need no part of

        return current_context(Path(self.kubeconfig))

    @property
    def lock(self) -> LockStore:
        """The lock's annotation on the DaemonSet."""
        return LockStore(self.api, namespace=self.namespace, name=self.name, annotation=self.annotation)

    @property
    def lock_daemonset(self) -> str:
        """For messages, such as `DaemonSet careen/careen`."""
        return f"DaemonSet {self.namespace}/{self.name}"


def ask(
    question: Callable[[Cluster], Awaitable[T]],
    *,
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    name: str | None,
    annotation: str,
) -> T:
    """Calls `question` with a client. Searches for the lock's DaemonSet unless both `namespace` and `name` are
    given."""
    file = kubeconfig_file(kubeconfig)
    transport = transport_to(file, context)
    clock = SystemClock()
    # One person's command needs no jitter.
    api = ClusterApi(transport, clock, chance=lambda: 0.0)

    async def find_and_ask() -> T:
        found = await lock_place.find(api, namespace=namespace, name=name, annotation=annotation)
        return await question(
            Cluster(
                api=api,
                clock=clock,
                kubeconfig=str(file or ""),
                context=context or "",
                namespace=found[0],
                name=found[1],
                annotation=annotation,
                server=transport.server,
            )
        )

    try:
        return asyncio.run(_answered(find_and_ask()))
    finally:
        transport.close()


def transport_to(kubeconfig: Path | None, context: str | None) -> ClientTransport:
    """To the kubeconfig's cluster, or to this pod's. Exit code 2 if the kubeconfig or the service account cannot be
    read."""
    if not _asks_for_oauth(kubeconfig):
        load_lean_client()
    from careen.cluster.wire.client import CannotReachCluster, NoSuchContext, connect

    try:
        return connect(kubeconfig, part="cli", context=context)
    except NoSuchContext as error:
        raise BadInput(_no_such_context(error)) from error
    except CannotReachCluster as error:
        raise BadInput(str(error)) from error


def watching_transport(kubeconfig: str, context: str) -> ClientTransport:
    """A second transport to the same cluster, for many connections that stay open."""
    from careen.cluster.wire.client import connect

    return connect(
        Path(kubeconfig) if kubeconfig else None, part="shadow", context=context or None, connections=_MOST_WATCHES
    )


def _asks_for_oauth(kubeconfig: Path | None) -> bool:
    """Only a user with an `auth-provider` needs OAuth, which the lean client does not load."""
    for name in str(kubeconfig or "").split(os.pathsep):
        with suppress(OSError, ValueError):
            if b"auth-provider" in Path(name).read_bytes():
                return True
    return False


def _no_such_context(error: NoSuchContext) -> str:
    """Lists the kubeconfig's contexts and suggests similar ones."""
    contexts = f"the kubeconfig has the contexts {listed(error.names, most=9)}"
    if not error.name:
        return f"{error}: choose a context with --context; {contexts}"
    return f"{error}{did_you_mean(error.name, error.names, otherwise=';')} {contexts}"


def kubeconfig_file(given: str | None) -> Path | None:
    """None for this pod's service account. KUBECONFIG may name several files, as for kubectl."""
    if given:
        return Path(given)
    default_file = Path.home() / ".kube" / "config"
    if default_file.exists():
        return default_file
    if SERVICE_ACCOUNT.exists():
        return None
    raise BadInput(
        f"there is no cluster to read: {default_file} does not exist, and this command does not run in a pod; give "
        "--kubeconfig FILE or set KUBECONFIG"
    )


async def _answered(question: Awaitable[T]) -> T:
    """An error ends the command with one sentence: what failed, where, and what to do."""
    try:
        return await question
    except NotSent as error:
        raise click.ClickException(
            f"the API server cannot be reached: {error}; check the server's address in the kubeconfig"
        ) from error
    except Unauthorized as error:
        raise click.ClickException(
            f"the API server does not accept these credentials: {error}; log in again, or choose another --context"
        ) from error
    except Forbidden as error:
        raise click.ClickException(
            f"a right is missing: {error.message or error}; ask the cluster's administrators for the right, or choose "
            "another --context"
        ) from error
    except ClusterError as error:
        raise click.ClickException(f"the API server did not answer: {error}; try again") from error
    except OSError as error:
        # Click ends the command silently if the reader of its output, such as `head`, has closed the pipe.
        if error.errno is None or error.errno == errno.EPIPE:
            raise
        raise click.ClickException(
            f"this command cannot write {error.filename or 'its output'}: {error.strerror}"
        ) from error


async def read_lock(cluster: Cluster) -> LockReading:
    """Ends the command with a message if the DaemonSet does not exist."""
    try:
        return await cluster.lock.read()
    except NotFound as error:
        raise click.ClickException(
            f"{cluster.lock_daemonset} does not exist, but this DaemonSet must carry the lock; name the DaemonSet with "
            "--ds-namespace and --ds-name"
        ) from error


class SeenLock(Value, kw_only=True):
    """The lock for a report: content, raw annotation and number of agents."""

    state: LockState
    raw: str | None = None
    agents: int | None = None


async def look_at_lock(cluster: Cluster) -> SeenLock:
    """The lock for a report; unknown if it cannot be read. Raises `NotSent`: no other request would arrive either, and
    each is tried for seconds."""
    try:
        reading = await cluster.lock.read()
    except NotSent:
        raise
    except NotFound:
        return SeenLock(
            state=Unknown(
                f"{cluster.lock_daemonset} does not exist; name the lock's DaemonSet with --ds-namespace and --ds-name"
            )
        )
    except ClusterError as error:
        return SeenLock(state=Unknown(str(error)))
    return SeenLock(state=reading.content, raw=reading.text, agents=reading.agents)


async def read_node_or_fail(cluster: Cluster, name: str) -> NodeView:
    """Exit code 2 and similar names if there is no such Node."""
    node = await read_node(cluster.api, name)
    if not isinstance(node, Gone):
        return node
    raise no_such_node(name, [each.name for each in await list_nodes(cluster.api)])


async def annotate_node(
    cluster: Cluster, name: str, purpose: str, change: Callable[[NodeView], dict[str, str | None]]
) -> NodeView:
    """Sets annotations, or removes them (None). Returns the Node after the write.

    `change` gives the annotations for the current Node; after a conflict it is called again.
    """
    for _ in range(TRIES):
        seen = await read_node_or_fail(cluster, name)
        outcome = await patch_node(
            cluster.api,
            name,
            PatchNode(purpose=purpose, resource_version=seen.resource_version, annotations=change(seen)),
        )
        if isinstance(outcome, Landed):
            return outcome.seen
        if isinstance(outcome, StillUnclear):
            raise click.ClickException(
                f"it is not known whether the Node was changed: {outcome.why}; check the Node with `careen why {name}`"
            )
        if not isinstance(outcome, Stale):
            raise click.ClickException(f"the Node was not changed: {outcome.why}")
    raise click.ClickException(
        f"other clients changed the Node {TRIES} times while this command tried to write it; this command changed "
        "nothing, try again"
    )
