"""Sends a person's request to one node, and waits for the outcome; `core/people/asked.py` defines the requests."""

from __future__ import annotations

from collections.abc import Callable

import click

from careen.cli.support.connection import Cluster, annotate_node, read_node_or_fail
from careen.cli.support.screen import BadInput, say
from careen.cluster.nodes import read_node
from careen.cluster.wire.errors import ClusterError, Forbidden, Unauthorized
from careen.core.facts import keys
from careen.core.facts.observation import Gone, NodeView, PersonRequest, Wish
from careen.core.facts.phases import WORKING, Phase
from careen.core.people.asked import request_of, sentence, to_annotation
from careen.report.fleet_report import phase_of

LOOK_SECONDS = 2.0

IDLE_LOOK = "an idle agent looks at its Node every five minutes"


async def ask(cluster: Cluster, name: str, wish: PersonRequest) -> NodeView:
    """Writes the request on the Node. Does not replace one of another kind: exit code 2."""

    def change(seen: NodeView) -> dict[str, str | None]:
        if phase_of(seen) == Phase.FAILED:
            raise BadInput(f"{name} failed; see `careen why {name}`, then run `careen retry {name}` first")
        before = request_of(seen)
        if before is not None and before.wish is not wish.wish:
            raise BadInput(f"{name}: {sentence(before)} already; {_way_out(before, name)} first")
        if before is not None:
            say(f"{name}: {sentence(before)} already. The new one replaces it.")
        return {keys.REQUEST: to_annotation(wish)}

    return await annotate_node(cluster, name, wish.wish.value, change)


async def withdraw(cluster: Cluster, name: str, wish: Wish) -> bool:
    """Removes the request; False if there is none. Does not remove one of another kind: exit code 2."""
    before = await read_node_or_fail(cluster, name)
    if keys.REQUEST not in before.annotations:
        return False

    def change(seen: NodeView) -> dict[str, str | None]:
        standing = request_of(seen)
        if standing is not None and standing.wish is not wish:
            raise BadInput(f"{name}: {sentence(standing)}; {_way_out(standing, name)} ends that")
        return {keys.REQUEST: None}

    await annotate_node(cluster, name, f"end {wish}", change)
    return True


def _way_out(request: PersonRequest, name: str) -> str:
    return f"`careen {request.wish} {name} --end`"


async def wait_for(cluster: Cluster, name: str, is_reached: Callable[[NodeView], bool]) -> NodeView:
    """Tells each change of phase or reason until it is reached. Ends the command with exit code 1 when the node fails
    or its Node goes away. An API server that does not answer for a while is waited for: it may be the one that reboots.
    """
    told = ""
    while True:
        seen = await _look(cluster, name)
        if isinstance(seen, Gone):
            raise click.ClickException(f"the Node {name} was deleted")
        now = _told(seen) if seen is not None else "the API server does not answer; waits for it"
        if now != told:
            say(now)
        told = now
        if seen is not None and is_reached(seen):
            return seen
        if seen is not None and phase_of(seen) == Phase.FAILED:
            raise click.ClickException(f"{name} failed; `careen why {name}` shows the remedy")
        await cluster.clock.sleep(LOOK_SECONDS)


async def _look(cluster: Cluster, name: str) -> NodeView | Gone | None:
    try:
        return await read_node(cluster.api, name)
    except (Forbidden, Unauthorized):
        raise
    except ClusterError:
        return None


def _told(node: NodeView) -> str:
    reason = node.annotations.get(keys.REASON, "")
    return f"{node.name} is {phase_of(node)}{f': {reason}' if reason else ''}"


def is_at_rest(node: NodeView) -> bool:
    """Whether careen is not working on this node: it is idle or waits."""
    return phase_of(node) not in {*WORKING, Phase.CLAIMING, Phase.SETTLING, Phase.FAILED}
