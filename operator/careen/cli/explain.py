"""`careen explain POD`: how each scheduler plugin would judge each node if the pod were placed now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from careen.agent.forecast.child import supported
from careen.cli.support.files import dump_of
from careen.cli.support.options import (
    Connection,
    connection_options,
    dump_option,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.screen import BadInput, did_you_mean, no_such_node, say
from careen.report.explain_report import explain_json, explain_text
from scheduler_core.cycle import NoProfileError, Scheduler
from scheduler_core.model.manifests.fields import clock_at
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.record import explain as explain_pod
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster

World = tuple[Snapshot, str, Callable[[], float] | None]  # and the release of its scheduler, the time of the lists


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


async def from_cluster(cluster: Cluster) -> World:
    from careen.cluster.snapshot_reader import server_version  # a dump needs no client
    from careen.cluster.whole_cluster import read_cluster

    version, note = supported(await server_version(cluster.api))
    _say(note)
    moment = cluster.clock.now().timestamp()
    return await read_cluster(cluster.api), version, lambda: moment


def from_dump(path: Path) -> World:
    dump = dump_of(path)
    version, note = supported(dump.header.kube_version)
    _say(note)
    return dump.snapshot, version, clock_at(dump.header.taken_at)


def _say(note: str) -> None:
    if note:
        say(f"Note: {note}.", err=True)


def find_pod(snapshot: Snapshot, key: str) -> Pod:
    """Without a namespace: in `default`, as in kubectl."""
    wanted = key if "/" in key else f"default/{key}"
    try:
        return snapshot.pod(wanted)
    except UnknownPodError as error:
        raise BadInput(f"there is no pending or running pod {key!r}{_suggestion(snapshot, wanted)}") from error


def _suggestion(snapshot: Snapshot, wanted: str) -> str:
    """Pods of the same name in other namespaces, or of a similar name."""
    keys = [pod.key for pod in (*snapshot.placed_pods, *snapshot.pending)]
    same = sorted(each for each in keys if each.rpartition("/")[2] == wanted.rpartition("/")[2])
    if same:
        return f"; did you mean {', '.join(same[:3])}?"
    return did_you_mean(wanted, keys, otherwise="; write the pod as NAMESPACE/POD")
