"""`careen recheck NODE…`: makes agents look at once, instead of after their pause."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, annotate_node
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import IDLE_LOOK, Choice, chosen, for_all, nodes_argument
from careen.cli.support.screen import say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.times import rfc3339


@click.command()
@nodes_argument
@cluster_command
async def recheck(cluster: Cluster, *, choice: Choice) -> None:
    """Make the agent of each NODE ask the host and the gates again at once. Its old answers and pauses do not count."""

    async def ask_one(node: NodeView) -> None:
        await annotate_node(cluster, node.name, "recheck", lambda _: {keys.RECHECK: rfc3339(cluster.clock.now())})
        when = f"; {IDLE_LOOK}" if node.shown_phase == Phase.IDLE else ""
        say(f"Requested: the agent of {node.name} looks again in its next turn{when}.")

    await for_all(await chosen(cluster, choice), ask_one, "were not asked to look again")
