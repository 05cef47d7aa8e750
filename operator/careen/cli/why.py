"""`careen why NODE`: every gate's answer, since when, and what would change it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from careen.cli.support.agents_settings import agents_of
from careen.cli.support.connection import Cluster, SeenLock, look_at_lock, read_node_or_fail
from careen.cli.support.options import cluster_command, output_option, show
from careen.cluster.nodes import read_node
from careen.cluster.pods import list_pods_on
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.observation import NodeView, PodView, Unknown
from careen.core.facts.policy import Policy
from careen.core.lock.content import LockContent
from careen.report.gate_answers import NodeStory
from careen.report.lock_report import LockState
from careen.report.why_report import why_json, why_text
from careen.rollout.older_records import refusals_of
from careen.rollout.refusals import named_in

_MOST_NAMED = 5  # requests


@click.command()
@click.argument("node")
@click.option("--all", "is_whole", is_flag=True, help="Show every gate, even if none refuses.")
@output_option
@cluster_command
async def why(cluster: Cluster, *, node: str, is_whole: bool, output: str) -> None:
    """Show why NODE does not reboot: every gate's answer, since when, and what would change the answer. The report on a
    node that no gate refuses is three lines."""
    found = await look_at_lock(cluster)
    seen = await read_node_or_fail(cluster, node)
    story = await story_of(cluster, seen, found, (await agents_of(cluster)).policy)
    show(output, text=lambda width: why_text(story, width=width, is_whole=is_whole), value=lambda: why_json(story))


async def story_of(cluster: Cluster, node: NodeView, lock: SeenLock, policy: Policy | None) -> NodeStory:
    """The facts about the node, with the holders, the nodes that its refusals name, and its agent's pods, read now.
    Raises `ClusterError`."""
    holding = _others_holding(lock.state, node.name)
    named = [each for each in named_in(refusals_of(node)) if each not in (*holding, node.name)][:_MOST_NAMED]
    holders, others = await _nodes(cluster, holding), await _nodes(cluster, named)
    return NodeStory(
        node=node,
        lock=lock.state,
        agents=await _agents(cluster, node.name),
        now=cluster.clock.now(),
        holders=holders,
        named=others,
        policy=policy,
        fleet_size=lock.agents,
    )


async def _nodes(cluster: Cluster, names: Sequence[str]) -> list[NodeView]:
    found = [await read_node(cluster.api, name) for name in names]
    return [each for each in found if isinstance(each, NodeView)]


def _others_holding(lock: LockState, node: str) -> list[str]:
    return [name for name in lock.holders if name != node] if isinstance(lock, LockContent) else []


async def _agents(cluster: Cluster, node: str) -> Sequence[PodView] | Unknown:
    """The pods of careen's agent on the node; unknown if they may not be listed, so that the rest of the report still
    shows."""
    try:
        pods = await list_pods_on(cluster.api, node)
    except ClusterError as error:
        return Unknown(str(error))
    return [
        pod
        for pod in pods
        if (pod.namespace, pod.owner_kind, pod.owner_name) == (cluster.namespace, "DaemonSet", cluster.name)
    ]
