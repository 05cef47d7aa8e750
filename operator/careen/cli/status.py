"""`careen status`: every node's phase, since when and why, its place in line, the holders and the next node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from careen.cli.support.connection import Cluster, look_at_lock
from careen.cli.support.options import cluster_command, nodes_output_option, show
from careen.cli.support.screen import say_lines
from careen.cluster.nodes import list_nodes
from careen.report.fleet_report import fleet_json, fleet_text, names_text
from careen.report.headline import asks_for_policy, headline, headline_json, headline_text

if TYPE_CHECKING:
    from careen.core.facts.policy import Policy


@click.command()
@click.option("--busy", is_flag=True, help="Leave out idle nodes.")
@nodes_output_option
@cluster_command
async def status(cluster: Cluster, *, busy: bool, output: str) -> None:
    """Show every node's phase, how long it has been in that phase, its place in line and the reason. Also show which
    nodes hold a claim and which node is next. If no node can start, the first lines say why."""
    # Reads the lock first: a claim released between the two reads is then shown with a node that still has it.
    lock = await look_at_lock(cluster)
    nodes = await list_nodes(cluster.api)
    if output == "name":
        say_lines(names_text(nodes, lock.state, only_busy=busy))
        return
    now = cluster.clock.now()
    found = headline(nodes, lock.state, now, await _policy(cluster) if asks_for_policy(nodes) else None)

    def text(width: int | None) -> str:
        fleet = fleet_text(nodes, lock.state, now, only_busy=busy, is_wide=output == "wide", width=width)
        return f"{headline_text(found, now, width=width)}\n\n{fleet}" if found else fleet

    show(
        output,
        text=text,
        value=lambda: {
            "headline": headline_json(found),
            **fleet_json(nodes, lock.state, raw_lock=lock.raw, only_busy=busy),
        },
    )


async def _policy(cluster: Cluster) -> Policy | None:
    """The settings modules are imported only here, because few calls need them."""
    from careen.cli.support.agents_settings import agents_of

    return (await agents_of(cluster)).policy
