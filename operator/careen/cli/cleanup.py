"""`careen cleanup`: removes careen's marks from Nodes and the lock.

Nodes first: the lock keeps the claim of a node that could not be cleaned.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import click

from careen.cli.support.agents_settings import agents_of
from careen.cli.support.connection import TRIES, Cluster
from careen.cli.support.options import cluster_command, output_option, show
from careen.cluster.foreign import Pods, pods_of
from careen.cluster.nodes import list_signed_nodes, patch_node, read_signed_node
from careen.cluster.wire.errors import ClusterError, NotFound
from careen.cluster.wire.writes import Landed, Stale
from careen.core.actions import WriteLock
from careen.core.cleanup import lock as lock_cleanup
from careen.core.cleanup import node as node_cleanup
from careen.core.cleanup.node import NodeLeftovers
from careen.core.cleanup.values import Extent
from careen.core.facts.observation import Gone, SignedNode
from careen.core.lock import notation
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.lock.reading import LockReading
from careen.report.cleanup_report import Cleaned, Cleanup, cleanup_json, cleanup_text
from careen.report.tables import listed
from scheduler_core.sentences import count_of
from scheduler_core.values import Value


@click.command()
@click.option(
    "--yes", is_flag=True, help="Change the cluster; without this flag the command only shows what it would remove."
)
@click.option(
    "--kured",
    "with_kureds",
    is_flag=True,
    help="Also remove kured's annotations and claims, and uncordon the nodes that kured cordoned under these claims.",
)
@click.option(
    "--unknown",
    "with_unknown",
    is_flag=True,
    help="Also remove labels, annotations and claims that another release of careen wrote and this release does not "
    "know.",
)
@click.option(
    "--key",
    "also",
    multiple=True,
    metavar="KEY",
    help="Also remove labels, annotations and PreferNoSchedule taints with the key KEY; may be given several times.",
)
@click.option("--even-rebooting", is_flag=True, help="Continue even if a node is in the middle of a reboot.")
@click.option(
    "--even-with-agents",
    is_flag=True,
    help="Continue even if agents run. These agents will write their marks on their Nodes again.",
)
@output_option
@cluster_command
async def cleanup(
    cluster: Cluster,
    *,
    yes: bool,
    with_kureds: bool,
    with_unknown: bool,
    also: tuple[str, ...],
    even_rebooting: bool,
    even_with_agents: bool,
    output: str,
) -> None:
    """Show careen's taints, labels, annotations, cordons and claims; --yes removes them."""
    extent = Extent(with_kureds=with_kureds, with_unknown=with_unknown, also=frozenset(also))
    scene = await _read_cluster(cluster, extent)
    found = _found(scene)
    if yes:
        problems = ("" if even_with_agents else _still_running(scene), "" if even_rebooting else _rebooting(found))
        found = replace(found, refused=" ".join(filter(None, problems)))
    if yes and not found.refused:
        found = await _apply(cluster, scene, found, even_rebooting=even_rebooting)
    show(output, text=lambda width: cleanup_text(found, width=width), value=lambda: cleanup_json(found))
    if found.refused or found.failed:
        raise SystemExit(1)


class CleanupInput(Value, kw_only=True):
    """The Nodes and the lock that the command has read, and which marks it removes."""

    nodes: tuple[SignedNode, ...]
    reading: LockReading | None
    extent: Extent
    lock_daemonset: str
    notes: tuple[str, ...] = ()

    @property
    def lock(self) -> LockContent | Garbage:
        """Empty without a DaemonSet."""
        return self.reading.content if self.reading else LockContent()

    def entry_of(self, name: str) -> Entry | None:
        """The Node's claim, if it has one."""
        return next(iter(self.lock.entries_of(name)), None) if isinstance(self.lock, LockContent) else None


# ---- read ----


async def _read_cluster(cluster: Cluster, extent: Extent) -> CleanupInput:
    """The lock is read first: if a node takes a claim later, the cleanup's write of the lock conflicts."""
    notes: list[str] = []
    reading: LockReading | None = None
    pods = Pods(number=0, are_kureds=False)
    try:
        reading = await cluster.lock.read()
        pods = await pods_of(cluster.api, namespace=cluster.namespace, name=cluster.name)
    except NotFound:
        notes.append(f"{cluster.lock_daemonset} does not exist, so there is no lock to clean")
    agents = 0 if pods.are_kureds else pods.number
    if agents:
        notes.append(
            f"{count_of(agents, 'agent')} of {cluster.lock_daemonset} may still run and write careen's marks again. "
            "Delete the DaemonSet first"
        )
    known = await agents_of(cluster) if reading else None
    if known and known.note:
        notes.append(known.note)
    policy = known.policy if known else None
    return CleanupInput(
        nodes=await list_signed_nodes(cluster.api),
        reading=reading,
        extent=replace(extent, policy=policy, agents=agents, pods=pods.number),
        lock_daemonset=cluster.lock_daemonset,
        notes=tuple(notes),
    )


def _found(scene: CleanupInput) -> Cleanup:
    nodes = (_of_node(_leftovers(scene, signed)) for signed in scene.nodes)
    return Cleanup(
        nodes=tuple(each for each in nodes if each.goes or each.stays or each.rebooting),
        lock=_of_lock(scene, keep=()),
        is_applied=False,
        agents=scene.extent.agents,
        notes=scene.notes,
    )


def _leftovers(scene: CleanupInput, signed: SignedNode) -> NodeLeftovers:
    return node_cleanup.leftovers(signed, scene.extent, scene.entry_of(signed.node.name))


def _of_node(found: NodeLeftovers) -> Cleaned:
    return Cleaned(name=found.node.name, goes=found.goes, stays=found.stays, rebooting=found.rebooting)


def _of_lock(scene: CleanupInput, *, keep: Collection[str]) -> Cleaned:
    content = scene.lock
    if isinstance(content, Garbage):
        return Cleaned(name=scene.lock_daemonset, trouble=_GARBAGE.format(why=content.why))
    found = lock_cleanup.leftovers(content, scene.extent, keep=keep)
    return Cleaned(name=scene.lock_daemonset, goes=found.goes, stays=found.stays)


_GARBAGE = "the lock cannot be understood ({why}); `careen lock show` prints the content and says how to clear the lock"


def _still_running(scene: CleanupInput) -> str:
    """Why the cleanup must not start while agents may run; "" if none can. An agent could write a cordon or a claim
    between two writes of the cleanup, and nothing would remove it later."""
    agents = scene.extent.agents
    if not agents:
        return ""
    return (
        f"{count_of(agents, 'agent')} of {scene.lock_daemonset} may still run. Delete the DaemonSet first and wait "
        "until its pods are gone, or give --even-with-agents if no agent runs."
    )


def _rebooting(found: Cleanup) -> str:
    nodes_with_reasons = [f"{each.name}: {each.rebooting}" for each in found.nodes if each.rebooting]
    if not nodes_with_reasons:
        return ""
    return (
        f"{listed(nodes_with_reasons)}. Wait until "
        f"{'the node is' if len(nodes_with_reasons) == 1 else 'the nodes are'} back, or give --even-rebooting if you "
        "know that no reboot is under way."
    )


# ---- apply ----


async def _apply(cluster: Cluster, scene: CleanupInput, found: Cleanup, *, even_rebooting: bool) -> Cleanup:
    by_name = {signed.node.name: signed for signed in scene.nodes}
    nodes = tuple(
        [
            await _clean_node(cluster, scene, by_name[each.name], even_rebooting=even_rebooting) if each.goes else each
            for each in found.nodes
        ]
    )
    keep = {each.name for each in nodes if each.trouble}
    return replace(found, nodes=nodes, lock=await _clean_lock(cluster, scene, keep), is_applied=True)


async def _clean_node(cluster: Cluster, scene: CleanupInput, signed: SignedNode, *, even_rebooting: bool) -> Cleaned:
    """Writes with the Node's resourceVersion; after a conflict reads the Node again."""
    name, seen = signed.node.name, _leftovers(scene, signed)
    for _ in range(TRIES):
        cleaned = _of_node(seen)
        if seen.rebooting and not even_rebooting:
            return replace(cleaned, trouble=seen.rebooting)
        if seen.patch is None:
            return replace(cleaned, is_done=True)
        outcome = await patch_node(cluster.api, name, seen.patch)
        if isinstance(outcome, Landed):
            return replace(cleaned, is_done=True)
        if not isinstance(outcome, Stale):
            return replace(cleaned, trouble=outcome.why)
        try:
            again = await read_signed_node(cluster.api, name)
        except ClusterError as error:
            return replace(
                cleaned, trouble=f"another client changed the Node, and the Node could not be read again: {error}"
            )
        if isinstance(again, Gone):
            return Cleaned(name=name, is_done=True)
        seen = _leftovers(scene, again)
    return replace(
        _of_node(seen),
        trouble=f"other clients changed the Node {TRIES} times while the cleanup tried to write it; try again",
    )


async def _clean_lock(cluster: Cluster, scene: CleanupInput, keep: Collection[str]) -> Cleaned:
    """After a conflict reads the lock again. A claim taken since the first read stays: careen is now working on that
    node."""
    known = _claims(scene.lock)
    for _ in range(TRIES):
        cleaned, reading, content = _of_lock(scene, keep=keep), scene.reading, scene.lock
        if cleaned.trouble or not cleaned.goes or reading is None or isinstance(content, Garbage):
            return cleaned
        left = lock_cleanup.leftovers(content, scene.extent, keep=keep).content
        outcome = await cluster.lock.write(
            WriteLock(
                purpose="cleanup",
                expected_resource_version=reading.resource_version,
                daemonset_uid=reading.daemonset_uid,
                content=notation.render(left),
            )
        )
        if isinstance(outcome, Landed):
            return replace(cleaned, is_done=True)
        if not isinstance(outcome, Stale):
            return replace(cleaned, trouble=outcome.why)
        try:
            scene = replace(scene, reading=await cluster.lock.read())
        except NotFound:
            return Cleaned(name=scene.lock_daemonset, is_done=True)
        except ClusterError as error:
            return replace(
                cleaned, trouble=f"another client changed the lock, and the lock could not be read again: {error}"
            )
        keep = {*keep, *(node for node, _ in _claims(scene.lock) - known)}
    return replace(
        cleaned, trouble=f"other clients changed the lock {TRIES} times while the cleanup tried to write it; try again"
    )


def _claims(content: LockContent | Garbage) -> frozenset[tuple[str, str]]:
    """Each claim's node and id."""
    return (
        frozenset((entry.node, entry.id) for entry in content.entries)
        if isinstance(content, LockContent)
        else frozenset()
    )
