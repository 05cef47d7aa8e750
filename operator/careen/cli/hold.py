"""`careen hold NODE…` and `careen unhold NODE…`."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from careen.cli.support.connection import Cluster, annotate_node
from careen.cli.support.options import cluster_command
from careen.cli.support.requests import Choice, chosen, for_all, nodes_argument
from careen.cli.support.screen import say
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import WORKING, Phase
from careen.core.facts.times import LATEST, from_rfc3339, rfc3339


@click.command()
@nodes_argument
@click.option(
    "--reason", required=True, metavar="TEXT", help="The reason for the hold; `careen why` shows this reason."
)
@click.option(
    "--until",
    metavar="WHEN",
    help="When the hold ends by itself: a duration such as 90m or 2h, or an instant such as 2026-03-04T18:00:00Z.",
)
@cluster_command
async def hold(cluster: Cluster, *, choice: Choice, reason: str, until: str | None) -> None:
    """Keep each NODE from rebooting. If a node is draining, its agent undoes the drain. If the agent has already asked
    the host to reboot, the reboot still happens."""
    if not reason.strip() or "until=" in reason:
        raise click.BadParameter(
            "the reason must not be empty or contain `until=`; give the end of the hold with --until",
            param_hint="--reason",
        )
    end = end_of(until, cluster.clock.now()) if until else None
    # Line breaks become spaces, because every output shows the reason inside a line.
    why = " ".join(reason.split())
    text = f"{why} until={rfc3339(end)}" if end else why

    def change(seen: NodeView) -> dict[str, str | None]:
        if old_hold := seen.annotations.get(keys.HOLD):
            say(f"{seen.name} was held already: {old_hold}. The new hold replaces the old one.")
        return {keys.HOLD: text}

    async def hold_one(node: NodeView) -> None:
        seen = await annotate_node(cluster, node.name, "hold", change)
        say(f"Held: {text}. " + _what_now(seen, end))

    await for_all(await chosen(cluster, choice), hold_one, "could not be held")


@click.command()
@nodes_argument
@cluster_command
async def unhold(cluster: Cluster, *, choice: Choice) -> None:
    """Remove the hold of each NODE, so that it may reboot."""

    async def unhold_one(node: NodeView) -> None:
        old_hold = node.annotations.get(keys.HOLD)
        if old_hold is None:
            say(f"{node.name} is not held; nothing was changed.")
            return
        await annotate_node(cluster, node.name, "unhold", lambda _: {keys.HOLD: None})
        say(f"{node.name} is no longer held. The hold was: {old_hold}.")

    nodes = await chosen(cluster, choice, concerns=lambda node: keys.HOLD in node.annotations, what="not held")
    await for_all(nodes, unhold_one, "could not be freed of their holds")


def _what_now(node: NodeView, end: datetime | None) -> str:
    phase = node.shown_phase
    if phase == Phase.DRAINING:
        return f"{node.name} is draining: the node's agent undoes the drain in the next turn."
    if phase in WORKING:
        return f"{node.name} is {phase}: the node completes this reboot, and the hold applies to the next reboot."
    if end:
        return f"{node.name} does not reboot until {rfc3339(end)} or until `careen unhold {node.name}`."
    return f"{node.name} does not reboot until `careen unhold {node.name}`."


def end_of(text: str, now: datetime) -> datetime:
    """Parses `--until`. Exit code 2 if it is invalid or not in the future."""
    from careen.settings.kinds import duration as go_duration  # only --until needs it

    end = from_rfc3339(text)
    if end is None:
        try:
            end = now + timedelta(seconds=go_duration(text))
        except (ValueError, OverflowError) as error:
            raise click.BadParameter(
                f"{text!r} is neither a duration such as 90m or 2h, nor a time with its offset such as "
                "2026-03-04T18:00:00Z",
                param_hint="--until",
            ) from error
    if end > LATEST:
        raise click.BadParameter(
            f"{text!r} ends after the year 2199; leave out --until to set no end",
            param_hint="--until",
        )
    if end <= now:
        raise click.BadParameter(
            f"{rfc3339(end)} is not in the future; the time is now {rfc3339(now)}", param_hint="--until"
        )
    return end
