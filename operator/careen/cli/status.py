"""`careen status`: every node's phase, since when, its turn and the reason; who holds the lock, who is next."""

from __future__ import annotations

import click

from careen.cli.connection import Cluster, look_at_lock
from careen.cli.options import cluster_command, output_option, show
from careen.cluster.nodes import list_nodes
from careen.report.fleet_report import fleet_json, fleet_text


@click.command()
@click.option("--busy", is_flag=True, help="Leave out nodes that have nothing to do.")
@output_option
@cluster_command
async def status(cluster: Cluster, *, busy: bool, output: str) -> None:
    """Every node's phase, since when, its turn and the reason; who holds the lock, who is next."""
    # The lock first: a claim that is given back between the two reads is then shown on a node that still carries it.
    lock = await look_at_lock(cluster)
    nodes = await list_nodes(cluster.api)
    now = cluster.clock.now()
    show(
        output,
        text=lambda width: fleet_text(nodes, lock.state, now, only_busy=busy, width=width),
        value=lambda: fleet_json(nodes, lock.state, raw_lock=lock.raw, only_busy=busy),
    )
