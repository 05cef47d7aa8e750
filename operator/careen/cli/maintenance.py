"""`careen drain NODE` and `careen maintenance NODE`: the node's agent takes a claim, drains the node and keeps it
cordoned; `--end` puts it back into service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from careen.cli.hold import end_of
from careen.cli.support.connection import Cluster
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import IDLE_LOOK, ask, is_at_rest, wait_for, withdraw
from careen.cli.support.screen import say
from careen.core.facts import keys
from careen.core.facts.observation import PersonRequest, RequestKind
from careen.core.facts.phases import Phase
from careen.report.fleet_report import phase_of


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--end",
            is_flag=True,
            help="Put the node back into service: uncordon the node, wait for its workloads, and release its claim in "
            "the lock.",
        ),
        click.option(
            "--no-wait", is_flag=True, help="Return immediately; by default the command waits until the drain ends."
        ),
        click.option("--now", "is_now", is_flag=True, help="Drain even outside the maintenance window."),
        click.option(
            "--until",
            metavar="WHEN",
            help="Put the node back into service even if nobody runs --end: after a duration such as 90m, or at an "
            "instant such as 2026-03-04T18:00:00Z.",
        ),
    ):
        function = option(function)
    return function


@click.command()
@click.argument("node")
@click.option("--reason", default="", metavar="TEXT", help="The reason for the drain; `careen why` shows this reason.")
@_options
@cluster_command
async def drain(cluster: Cluster, *, node: str, **given: Any) -> None:
    """Drain NODE by the agents' own rules, under a claim, and keep it cordoned until --end. This does not request a
    reboot."""
    await _keep(cluster, node, RequestKind.DRAIN, **given)


@click.command()
@click.argument("node")
@click.option("--reason", default="", metavar="TEXT", help="The reason for the maintenance; required without --end.")
@_options
@cluster_command
async def maintenance(cluster: Cluster, *, node: str, **given: Any) -> None:
    """Drain NODE and keep it cordoned for work by hand, until --end or the time of --until.

    The node holds a claim during this time, so concurrency and budgets count it like a node that reboots. You may
    reboot the machine by hand: the node stays in maintenance, and its agent verifies the new boot after --end."""
    if not given["end"] and not given["reason"].strip():
        raise click.UsageError("give a --reason: people whose nodes wait see this reason in `careen why`")
    await _keep(cluster, node, RequestKind.MAINTENANCE, **given)


async def _keep(
    cluster: Cluster,
    node: str,
    kind: RequestKind,
    *,
    reason: str,
    until: str | None,
    is_now: bool,
    no_wait: bool,
    end: bool,
) -> None:
    if end:
        await _hand_back(cluster, node, kind, no_wait=no_wait)
        return
    now = cluster.clock.now()
    request = PersonRequest(
        kind=kind,
        reason=" ".join(reason.split()),
        at=now,
        until=end_of(until, now) if until else None,
        is_now=is_now,
    )
    await ask(cluster, node, request)
    say(
        f"Requested: {node} is drained when it is next in line, and stays cordoned until `careen {kind} {node} --end`; "
        f"{IDLE_LOOK}."
    )
    if not no_wait:
        found = await wait_for(
            cluster, node, lambda seen: phase_of(seen) == Phase.MAINTENANCE or keys.REQUEST not in seen.annotations
        )
        if phase_of(found) != Phase.MAINTENANCE:
            raise click.ClickException(f"{node} does not stay drained: the request was withdrawn or has expired")


async def _hand_back(cluster: Cluster, node: str, kind: RequestKind, *, no_wait: bool) -> None:
    if not await withdraw(cluster, node, kind):
        say(
            f"There is no request for {'a drain' if kind is RequestKind.DRAIN else 'maintenance'} of {node}; nothing "
            "was changed."
        )
        return
    say(f"Requested: the agent uncordons {node}, waits for its workloads and releases its claim.")
    if not no_wait:
        await wait_for(cluster, node, is_at_rest)
