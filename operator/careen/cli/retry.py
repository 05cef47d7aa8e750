"""`careen retry NODE…`: lets failed nodes try again, after a person has fixed the cause."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, annotate_node
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import Choice, chosen, for_all, nodes_argument
from careen.cli.support.screen import BadInput, say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.times import rfc3339

_MAY_RETRY = (Phase.FAILED, Phase.WAITING)


@click.command()
@nodes_argument
@cluster_command
async def retry(cluster: Cluster, *, choice: Choice) -> None:
    """Let each NODE, whose reboot failed, try again now. Fix the cause of the failure first."""

    async def retry_one(node: NodeView) -> None:
        name = node.name
        if node.shown_phase not in _MAY_RETRY:
            raise BadInput(
                f"{name} is {node.shown_phase}, so there is nothing to try again; `careen why {name}` shows the node's "
                "state"
            )
        if node.shown_phase == Phase.FAILED:
            say(f"{name} failed: {node.annotations.get(keys.REASON, 'no reason given')}")
        await annotate_node(cluster, name, "retry", lambda _: {keys.RETRY: rfc3339(cluster.clock.now())})
        say(f"Requested: the agent of {name} sees the request in the next turn; `careen why {name}` shows the outcome.")

    nodes = await chosen(
        cluster, choice, concerns=lambda node: node.shown_phase in _MAY_RETRY, what="neither failed nor waiting"
    )
    await for_all(nodes, retry_one, "were not asked to try again")
