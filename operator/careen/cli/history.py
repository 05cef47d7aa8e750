"""`careen history`: past reboots: when, why, how long, and how many pods moved."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, read_node_or_fail
from careen.cli.support.options import cluster_command, output_option, show
from careen.cluster.nodes import list_signed_nodes
from careen.report.history_report import history_json, history_text


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@output_option
@cluster_command
async def history(cluster: Cluster, *, nodes: tuple[str, ...], output: str) -> None:
    """Show past reboots: when, why, how long they took and how many pods moved. Without NODE, shows all nodes. A Node
    records its last five reboots."""
    names = tuple(dict.fromkeys(nodes))
    seen = [await read_node_or_fail(cluster, name) for name in names] or [
        each.node for each in await list_signed_nodes(cluster.api)
    ]
    now = cluster.clock.now()
    show(output, text=lambda width: history_text(seen, now, width=width), value=lambda: history_json(seen))
