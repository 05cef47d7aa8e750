"""The connection of a command to the cluster, and its messages if the cluster cannot be reached. The options are in
`options.py`.

Exit codes: 2 for what the caller wrote wrongly, 1 for what the cluster refused or did not answer.
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
from careen.core.facts.observation import Gone, LockReading, NodeView, Unknown
from careen.report.lock_report import LockState
from careen.report.tables import listed
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.cluster.wire.client import ClientTransport, NoSuchContext

T = TypeVar("T")

# The kubelet changes a Node and every claim changes the lock; a person's command should succeed nevertheless.
TRIES = 5

# One connection for each kind of object, and one for lists.
_MOST_WATCHES = 32

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class Cluster(Value, kw_only=True):
    """A client of a cluster, and the place of careen's lock in it."""

    api: ClusterApi
    clock: SystemClock
    kubeconfig: str
    """The file in use; empty for the service account of this pod."""
    context: str
    """Of the kubeconfig; empty for its current one."""
    namespace: str
    name: str
    annotation: str
    server: str = ""
    """The API server's address."""

    @property
    def context_in_use(self) -> str:
        """The kubeconfig's context, by name; empty where there is no kubeconfig, or it names none."""
        if self.context or not self.kubeconfig:
            return self.context
        from careen.cluster.wire.client import current_context  # loads the client, which most commands need no part of

        return current_context(Path(self.kubeconfig))

    @property
    def lock(self) -> LockStore:
        """The lock annotation on careen's DaemonSet."""
        return LockStore(self.api, namespace=self.namespace, name=self.name, annotation=self.annotation)

    @property
    def lock_title(self) -> str:
        """`DaemonSet careen/careen`, for sentences."""
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
    """The answer of one question to the cluster. Without namespace and name, searches for the DaemonSet with the
    lock."""
    file = _kubeconfig(kubeconfig)
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
    """A transport to the cluster of this kubeconfig, or of the pod that we are in. Ends the command with exit code 2
    where that cannot be read."""
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
    """A transport of its own for many connections that stay open, to the cluster of a `Cluster`."""
    from careen.cluster.wire.client import connect

    return connect(
        Path(kubeconfig) if kubeconfig else None, part="shadow", context=context or None, connections=_MOST_WATCHES
    )


def _asks_for_oauth(kubeconfig: Path | None) -> bool:
    """Whether the kubeconfig may need what the lean client leaves out: only users with an auth-provider do."""
    for name in str(kubeconfig or "").split(os.pathsep):
        with suppress(OSError, ValueError):
            if b"auth-provider" in Path(name).read_bytes():
                return True
    return False


def _no_such_context(error: NoSuchContext) -> str:
    """The existing contexts, and the one that was probably meant."""
    there_are = f"it has {listed(error.names, most=9)}"
    if not error.name:
        return f"{error}: choose one with --context; {there_are}"
    return f"{error}{did_you_mean(error.name, error.names, otherwise=';')} {there_are}"


def _kubeconfig(given: str | None) -> Path | None:
    """The file to use; None for the service account of the pod we are in. KUBECONFIG may name several, as
    kubectl takes them."""
    if given:
        return Path(given)
    own = Path.home() / ".kube" / "config"
    if own.exists():
        return own
    if SERVICE_ACCOUNT.exists():
        return None
    raise BadInput(
        f"no cluster to read: {own} does not exist and this is no pod; give --kubeconfig FILE or set KUBECONFIG"
    )


async def _answered(question: Awaitable[T]) -> T:
    """The answer, or one sentence for a person: what went wrong, where, and what to do."""
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
            f"a right is missing: {error.message or error}; ask the cluster's administrators, or choose another "
            "--context"
        ) from error
    except ClusterError as error:
        raise click.ClickException(f"the API server did not answer: {error}; try again") from error
    except OSError as error:
        # A reader that closed its end, as `head` does, is click's to end in silence.
        if error.errno is None or error.errno == errno.EPIPE:
            raise
        raise click.ClickException(f"cannot write {error.filename or 'the answer'}: {error.strerror}") from error


async def read_lock(cluster: Cluster) -> LockReading:
    """The current lock. Ends the command with a message if the DaemonSet does not exist."""
    try:
        return await cluster.lock.read()
    except NotFound as error:
        raise click.ClickException(
            f"{cluster.lock_title} does not exist, but it must carry the lock; name it with --ds-namespace and "
            "--ds-name"
        ) from error


class SeenLock(Value, kw_only=True):
    """The lock for a report that can do without it: the reading, the raw annotation, and how many agents there should
    be."""

    state: LockState
    raw: str | None = None
    agents: int | None = None


async def look_at_lock(cluster: Cluster) -> SeenLock:
    """The lock as it is now; unknown when it cannot be read."""
    try:
        reading = await cluster.lock.read()
    except NotFound:
        return SeenLock(
            state=Unknown(f"{cluster.lock_title} does not exist; name it with --ds-namespace and --ds-name")
        )
    except ClusterError as error:
        return SeenLock(state=Unknown(str(error)))
    return SeenLock(state=reading.content, raw=reading.text, agents=reading.agents)


async def read_node_or_fail(cluster: Cluster, name: str) -> NodeView:
    """The Node of that name. A name that no Node has is the caller's mistake: exit code 2, and the names that
    are close."""
    node = await read_node(cluster.api, name)
    if not isinstance(node, Gone):
        return node
    raise no_such_node(name, [each.name for each in await list_nodes(cluster.api)])


async def annotate_node(
    cluster: Cluster, name: str, purpose: str, change: Callable[[NodeView], dict[str, str | None]]
) -> NodeView:
    """Sets or removes (None) annotations of a Node; `change` gets the values that it replaces. Returns the Node as
    written."""
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
                f"it is not known whether the Node was changed: {outcome.why}; look with `careen why {name}`"
            )
        if not isinstance(outcome, Stale):
            raise click.ClickException(f"the Node was not changed: {outcome.why}")
    raise click.ClickException(
        f"the Node changed {TRIES} times while it was being written; nothing was changed, try again"
    )
