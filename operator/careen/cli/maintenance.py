"""`careen drain NODE…` and `careen maintenance NODE…`: each node's agent takes a claim, drains the node and keeps it
cordoned; `--end` puts it back into service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from careen.cli.hold import end_of
from careen.cli.support.connection import Cluster
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import (
    IDLE_LOOK,
    Choice,
    ask,
    chosen,
    end_with,
    for_each,
    is_at_rest,
    nodes_argument,
    reached,
    wait_for_each,
    withdraw,
)
from careen.cli.support.screen import say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, PersonRequest, RequestKind
from careen.core.facts.phases import Phase


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
@nodes_argument
@click.option("--reason", default="", metavar="TEXT", help="The reason for the drain; `careen why` shows this reason.")
@_options
@cluster_command
async def drain(cluster: Cluster, *, choice: Choice, **given: Any) -> None:
    """Drain each NODE by the agents' own rules, under a claim, and keep it cordoned until --end. This requests no
    reboot."""
    await _keep(cluster, choice, RequestKind.DRAIN, **given)


@click.command()
@nodes_argument
@click.option("--reason", default="", metavar="TEXT", help="The reason for the maintenance; required without --end.")
@_options
@cluster_command
async def maintenance(cluster: Cluster, *, choice: Choice, **given: Any) -> None:
    """Drain each NODE and keep it cordoned for work by hand, until --end or the time of --until.

    The node holds a claim during this time, so concurrency and budgets count it like a node that reboots. You may
    reboot the machine by hand: the node stays in maintenance, and its agent verifies the new boot after --end."""
    if not given["end"] and not given["reason"].strip():
        raise click.UsageError("give a --reason: people whose nodes wait see this reason in `careen why`")
    await _keep(cluster, choice, RequestKind.MAINTENANCE, **given)


async def _keep(
    cluster: Cluster,
    choice: Choice,
    kind: RequestKind,
    *,
    reason: str,
    until: str | None,
    is_now: bool,
    no_wait: bool,
    end: bool,
) -> None:
    if end:
        await _hand_back(cluster, choice, kind, no_wait=no_wait)
        return
    now = cluster.clock.now()
    request = PersonRequest(
        kind=kind,
        reason=" ".join(reason.split()),
        at=now,
        until=end_of(until, now) if until else None,
        is_now=is_now,
    )

    async def ask_one(node: NodeView) -> None:
        await ask(cluster, node.name, request)
        say(
            f"Requested: {node.name} is drained when it is next in line, and stays cordoned until "
            f"`careen {kind} {node.name} --end`; {IDLE_LOOK}."
        )

    nodes = await chosen(cluster, choice)
    kept = asked = await for_each(nodes, ask_one)
    if not no_wait:
        after = await wait_for_each(
            cluster, asked, lambda seen: seen.shown_phase == Phase.MAINTENANCE or keys.REQUEST not in seen.annotations
        )
        kept = await for_each(asked, lambda node: _check_kept(reached(after[node.name])))
    end_with(len(nodes) - len(kept), len(nodes), "are not drained")


async def _check_kept(found: NodeView) -> None:
    if found.shown_phase != Phase.MAINTENANCE:
        raise click.ClickException(f"{found.name} does not stay drained: the request was withdrawn or has expired")


async def _hand_back(cluster: Cluster, choice: Choice, kind: RequestKind, *, no_wait: bool) -> None:
    what = "a drain" if kind is RequestKind.DRAIN else "maintenance"
    given_back: list[NodeView] = []

    async def withdraw_one(node: NodeView) -> None:
        if not await withdraw(cluster, node.name, kind):
            say(f"There is no request for {what} of {node.name}; nothing was changed.")
            return
        say(f"Requested: the agent uncordons {node.name}, waits for its workloads and releases its claim.")
        given_back.append(node)

    nodes = await chosen(
        cluster, choice, concerns=lambda node: keys.REQUEST in node.annotations, what="no request on the Node"
    )
    asked = await for_each(nodes, withdraw_one)
    failures = len(nodes) - len(asked)
    if not no_wait and given_back:
        after = await wait_for_each(cluster, given_back, is_at_rest)
        back = await for_each(tuple(given_back), lambda node: _check_back(after[node.name]))
        failures += len(given_back) - len(back)
    end_with(failures, len(nodes), "are not back in service")


async def _check_back(found: NodeView | click.ClickException) -> None:
    reached(found)
