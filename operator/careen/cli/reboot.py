"""`careen reboot NODE`: requests a reboot and waits for it. Gates, lock and record are those of every other reboot."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster, read_node_or_fail
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import IDLE_LOOK, ask, is_at_rest, wait_for, withdraw
from careen.cli.support.screen import BadInput, say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, PersonRequest, RequestKind
from careen.core.facts.phases import Phase
from careen.report.fleet_report import phase_of


@click.command()
@click.argument("node")
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="The reason for the reboot; `careen why` and `careen history` show this reason.",
)
@click.option(
    "--now", "is_now", is_flag=True, help="Ignore the maintenance windows and the minimum interval between reboots."
)
@click.option(
    "--no-wait", is_flag=True, help="Return immediately; by default the command waits until the node has rebooted."
)
@click.option(
    "--end",
    is_flag=True,
    help="Withdraw the request for a reboot. This is possible until the agent announces the reboot.",
)
@cluster_command
async def reboot(cluster: Cluster, *, node: str, reason: str, is_now: bool, no_wait: bool, end: bool) -> None:
    """Request a reboot of NODE. Its agent waits in line, drains and verifies as for any reboot.

    Exit code 0: the node has rebooted and is back in service; with --no-wait: the request is written. Exit code 1: the
    reboot failed, or a person withdrew the request."""
    if end:
        _refuse_too_late(await read_node_or_fail(cluster, node))
        taken = await withdraw(cluster, node, RequestKind.REBOOT)
        say(
            f"The request for a reboot of {node} is withdrawn."
            if taken
            else f"There is no request for a reboot of {node}."
        )
        return
    before = await read_node_or_fail(cluster, node)
    if not before.boot_id:
        raise BadInput(f"the kubelet of {node} has not reported its boot id, so a new boot could not be recognised")
    request = PersonRequest(
        kind=RequestKind.REBOOT,
        reason=" ".join(reason.split()),
        at=cluster.clock.now(),
        boot=before.boot_id,
        is_now=is_now,
    )
    await ask(cluster, node, request)
    say(
        f"Requested: {node} reboots when it is next in "
        f"line{', even outside its maintenance window' if is_now else ''}; {IDLE_LOOK}."
    )
    if no_wait:
        return
    after = await wait_for(cluster, node, lambda seen: keys.REQUEST not in seen.annotations and is_at_rest(seen))
    _tell(after, before)


def _tell(after: NodeView, before: NodeView) -> None:
    if after.boot_id == before.boot_id:
        raise click.ClickException(f"{after.name} did not reboot: the request was withdrawn")
    say(f"{after.name} has rebooted and is back in service.")


def _refuse_too_late(node: NodeView) -> None:
    """Raises BadInput if the requested reboot has begun: the host may be going down."""
    if phase_of(node) == Phase.REBOOTING and keys.REQUEST in node.annotations:
        raise BadInput(
            f"it is too late to withdraw the request: the reboot of {node.name} was announced, and the host may "
            f"already be going down; `careen why {node.name}` shows the outcome"
        )
