"""`careen status`: every node's phase, since when and why, its place in line, the holders and the next node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from careen.cli.serving.last_writes import with_last_writes
from careen.cli.support.connection import Cluster, look_at_lock
from careen.cli.support.options import cluster_command, nodes_output_option, show
from careen.cli.support.requests import selector_option
from careen.cli.support.screen import say_lines
from careen.cluster.nodes import list_nodes
from careen.report.fleet_report import SCREEN, fleet_json, fleet_text, names_text
from careen.report.headline import asks_for_policy, headline_json, headline_text
from careen.rollout.as_json import rollout_json
from careen.rollout.reading import rollout

if TYPE_CHECKING:
    from careen.core.facts.policy import Policy
    from careen.core.facts.selectors import Selector


@click.command()
@click.option("--busy", is_flag=True, help="Leave out idle nodes.")
@click.option("--all", "everything", is_flag=True, help="Every node, not only a screen of 40 lines.")
@click.option("--watch", is_flag=True, help="Print a line whenever the verdict changes, like `careen watch --plain`.")
@selector_option("Only the nodes whose labels match, such as topology.kubernetes.io/zone=a, in the table.")
@nodes_output_option
@cluster_command
async def status(
    cluster: Cluster, *, busy: bool, everything: bool, watch: bool, selector: Selector | None, output: str
) -> None:
    """Show every node's phase, how long it has been in that phase, its place in line and the reason. Also show which
    nodes hold a claim and which node is next. If nothing is at work and no node can start, the first lines say why."""
    if watch:
        from careen.cli.watch import lines as watch_lines

        await watch_lines(cluster)
    # Reads the lock first: a claim released between the two reads is then shown with a node that still has it.
    lock = await look_at_lock(cluster)
    listed = await list_nodes(cluster.api)
    if output == "name":
        say_lines(names_text(listed, lock.state, only_busy=busy, selector=selector))
        return
    nodes = await with_last_writes(cluster.api, listed, lock.state)
    now = cluster.clock.now()
    model = rollout(nodes, lock.state, now, await _policy(cluster) if asks_for_policy(nodes) else None)
    found = next(iter(model.obstacles), None)

    def text(width: int | None) -> str:
        head = headline_text(found, now, width=width) if found else ""
        lines = None if everything else SCREEN - (head.count("\n") + 2 if head else 0)
        fleet = fleet_text(
            nodes,
            lock.state,
            now,
            only_busy=busy,
            is_wide=output == "wide",
            width=width,
            model=model,
            lines=lines,
            selector=selector,
        )
        return f"{head}\n\n{fleet}" if head else fleet

    def value() -> dict[str, Any]:
        told = rollout_json(model)
        return {
            "headline": headline_json(found),
            **fleet_json(nodes, lock.state, raw_lock=lock.raw, only_busy=busy, selector=selector, model=model),
            **{key: told[key] for key in ("progress", "causes")},
        }

    show(output, text=text, value=value)


async def _policy(cluster: Cluster) -> Policy | None:
    """The settings modules are imported only here, because few calls need them."""
    from careen.cli.support.agents_settings import agents_of

    return (await agents_of(cluster)).policy
