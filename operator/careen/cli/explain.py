"""`careen explain POD`: how each scheduler plugin would judge each node if the pod were placed now."""

from __future__ import annotations

from pathlib import Path

import click

from careen.cli.support.options import (
    Connection,
    connection_options,
    dump_option,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.screen import no_such_node
from careen.cli.support.world import find_pod, from_cluster, from_dump
from careen.report.explain_report import explain_json, explain_text
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.simulation.record import explain as explain_pod


@click.command()
@click.argument("pod", metavar="NAMESPACE/POD")
@click.option("--node", metavar="NODE", help="Show every scheduler plugin's answer for the node NODE.")
@click.option("--all", "every_node", is_flag=True, help="Print one line per node instead of one line per reason.")
@dump_option
@scheduler_config_option()
@output_option
@connection_options
def explain(
    connection: Connection,
    *,
    pod: str,
    node: str | None,
    every_node: bool,
    dump: Path | None,
    scheduler_config: Path | None,
    output: str,
) -> None:
    """Show how each scheduler plugin would judge each node if kube-scheduler placed the pod now. The command changes
    nothing."""
    from careen.cli.support.scheduler_configuration import given_configuration

    configuration = given_configuration(scheduler_config)
    snapshot, version, clock = from_dump(dump) if dump else connection.ask(from_cluster)
    try:
        record = explain_pod(Scheduler(configuration, version, clock=clock), snapshot, find_pod(snapshot, pod))
    except NoProfileError as error:
        raise click.ClickException(
            f"{error}; give the configuration of the pod's scheduler with --scheduler-config FILE"
        ) from error
    if node is not None and node not in {row.node for row in record.nodes}:
        where = "this dump" if dump else "this cluster"
        raise no_such_node(node, [row.node for row in record.nodes], where=where)
    show(
        output,
        text=lambda width: explain_text(record, node=node, every_node=every_node, width=width),
        value=lambda: explain_json(record),
    )
