"""`careen reboot NODE…`: requests reboots and waits. Gates, lock and record are those of every other reboot."""

from __future__ import annotations

import click

from careen.cli.support.connection import Cluster
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import (
    IDLE_LOOK,
    Choice,
    ask,
    chosen,
    end_with,
    for_all,
    for_each,
    is_at_rest,
    nodes_argument,
    reached,
    wait_for_each,
    withdraw,
)
from careen.cli.support.screen import BadInput, say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, PersonRequest, RequestKind
from careen.core.facts.phases import Phase


@click.command()
@nodes_argument
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
async def reboot(cluster: Cluster, *, choice: Choice, reason: str, is_now: bool, no_wait: bool, end: bool) -> None:
    """Request a reboot of each NODE. Its agent waits in line, drains and verifies as for any reboot.

    Exit code 0: the nodes have rebooted and are back in service; with --no-wait: the requests are written. Exit code 1:
    a reboot failed, or a person withdrew a request."""
    if end:
        await _withdraw(cluster, choice)
        return

    async def request(node: NodeView) -> None:
        if not node.boot_id:
            raise BadInput(
                f"the kubelet of {node.name} has not reported its boot id, so a new boot could not be recognised"
            )
        wanted = PersonRequest(
            kind=RequestKind.REBOOT,
            reason=" ".join(reason.split()),
            at=cluster.clock.now(),
            boot=node.boot_id,
            is_now=is_now,
        )
        await ask(cluster, node.name, wanted)
        say(
            f"Requested: {node.name} reboots when it is next in "
            f"line{', even outside its maintenance window' if is_now else ''}; {IDLE_LOOK}."
        )

    nodes = await chosen(cluster, choice)
    asked = await for_each(nodes, request)
    rebooted: tuple[NodeView, ...] = asked
    if not no_wait:
        after = await wait_for_each(
            cluster, asked, lambda seen: keys.REQUEST not in seen.annotations and is_at_rest(seen)
        )
        rebooted = await for_each(asked, lambda before: _tell(reached(after[before.name]), before))
    end_with(len(nodes) - len(rebooted), len(nodes), "did not reboot" if not no_wait else "were not asked to reboot")


async def _withdraw(cluster: Cluster, choice: Choice) -> None:
    async def withdraw_one(node: NodeView) -> None:
        _refuse_too_late(node)
        taken = await withdraw(cluster, node.name, RequestKind.REBOOT)
        say(
            f"The request for a reboot of {node.name} is withdrawn."
            if taken
            else f"There is no request for a reboot of {node.name}."
        )

    nodes = await chosen(
        cluster, choice, concerns=lambda node: keys.REQUEST in node.annotations, what="no request on the Node"
    )
    await for_all(nodes, withdraw_one, "keep their request")


async def _tell(after: NodeView, before: NodeView) -> None:
    if after.boot_id == before.boot_id:
        raise click.ClickException(f"{after.name} did not reboot: the request was withdrawn")
    say(f"{after.name} has rebooted and is back in service.")


def _refuse_too_late(node: NodeView) -> None:
    """Raises BadInput if the requested reboot has begun: the host may be going down."""
    if node.shown_phase == Phase.REBOOTING and keys.REQUEST in node.annotations:
        raise BadInput(
            f"it is too late to withdraw the request: the reboot of {node.name} was announced, and the host may "
            f"already be going down; `careen why {node.name}` shows the outcome"
        )
