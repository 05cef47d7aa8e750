"""`careen retry NODE…`: lets failed nodes try again, after a person has fixed the cause."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, annotate_node
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import Choice, chosen, end_with, for_each, nodes_argument
from careen.cli.support.screen import BadInput, say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.times import rfc3339
from careen.report.fleet_report import phase_of

_MAY_RETRY = (Phase.FAILED, Phase.WAITING)


@click.command()
@nodes_argument
@cluster_command
async def retry(cluster: Cluster, *, choice: Choice) -> None:
    """Let each NODE, whose reboot failed, try again now. Fix the cause of the failure first."""

    async def retry_one(node: NodeView) -> None:
        name = node.name
        if phase_of(node) not in _MAY_RETRY:
            raise BadInput(
                f"{name} is {phase_of(node)}, so there is nothing to try again; `careen why {name}` shows the node's "
                "state"
            )
        if phase_of(node) == Phase.FAILED:
            say(f"{name} failed: {node.annotations.get(keys.REASON, 'no reason given')}")
        await annotate_node(cluster, name, "retry", lambda _: {keys.RETRY: rfc3339(cluster.clock.now())})
        say(f"Requested: the agent of {name} sees the request in the next turn; `careen why {name}` shows the outcome.")

    nodes = await chosen(
        cluster, choice, concerns=lambda node: phase_of(node) in _MAY_RETRY, what="neither failed nor waiting"
    )
    retried = await for_each(nodes, retry_one)
    end_with(len(nodes) - len(retried), len(nodes), "were not asked to try again")
