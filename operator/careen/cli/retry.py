"""`careen retry NODE`: lets a failed node try again, after a person has fixed the cause."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, annotate_node, read_node_or_fail
from careen.cli.support.options import cluster_command
from careen.cli.support.screen import BadInput, say
from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.times import rfc3339
from careen.report.fleet_report import phase_of


@click.command()
@click.argument("node")
@cluster_command
async def retry(cluster: Cluster, *, node: str) -> None:
    """Let NODE, whose reboot failed, try again now. Fix the cause of the failure first."""
    seen = await read_node_or_fail(cluster, node)
    if phase_of(seen) not in (Phase.FAILED, Phase.WAITING):
        raise BadInput(
            f"{node} is {phase_of(seen)}, so there is nothing to try again; `careen why {node}` shows the node's state"
        )
    if phase_of(seen) == Phase.FAILED:
        say(f"{node} failed: {seen.annotations.get(keys.REASON, 'no reason given')}")
    await annotate_node(cluster, node, "retry", lambda _: {keys.RETRY: rfc3339(cluster.clock.now())})
    say(
        f"Requested: the agent of {node} sees the request in the next round of its loop; `careen why {node}` shows "
        "the outcome."
    )
