"""Writes a person's request on a Node, where the agent reads it, and waits for the outcome. `core/people/requests.py`
defines the requests."""

from __future__ import annotations

from collections.abc import Callable

import click

from careen.cli.support.connection import Cluster, annotate_node, read_node_or_fail
from careen.cli.support.screen import BadInput, say
from careen.cluster.nodes import read_node
from careen.cluster.wire.errors import ClusterError, Forbidden, Unauthorized
from careen.core.facts import keys
from careen.core.facts.observation import Gone, NodeView, PersonRequest, RequestKind
from careen.core.facts.phases import WORKING, Phase
from careen.core.people.requests import request_of, sentence, to_annotation
from careen.report.fleet_report import phase_of

LOOK_SECONDS = 2.0

IDLE_LOOK = "an idle agent sees the request within five minutes"


async def ask(cluster: Cluster, name: str, request: PersonRequest) -> NodeView:
    """Writes the request. Exit code 2 if the node has failed, or if its Node has a request of another kind."""

    def change(seen: NodeView) -> dict[str, str | None]:
        if phase_of(seen) == Phase.FAILED:
            raise BadInput(
                f"{name} failed; `careen why {name}` shows the remedy; run `careen retry {name}` before this command"
            )
        old_request = request_of(seen)
        if old_request is not None and old_request.kind is not request.kind:
            raise BadInput(f"{name}: {sentence(old_request)} already; run {_end_command(old_request, name)} first")
        if old_request is not None:
            say(f"{name} already has a request: {sentence(old_request)}. The new request replaces the old request.")
        return {keys.REQUEST: to_annotation(request)}

    return await annotate_node(cluster, name, request.kind.value, change)


async def withdraw(cluster: Cluster, name: str, kind: RequestKind) -> bool:
    """Removes the request. Returns False if there is none. Exit code 2 if it is of another kind."""
    before = await read_node_or_fail(cluster, name)
    if keys.REQUEST not in before.annotations:
        return False

    def change(seen: NodeView) -> dict[str, str | None]:
        request = request_of(seen)
        if request is not None and request.kind is not kind:
            raise BadInput(f"{name}: {sentence(request)}; {_end_command(request, name)} ends this request")
        return {keys.REQUEST: None}

    await annotate_node(cluster, name, f"end {kind}", change)
    return True


def _end_command(request: PersonRequest, name: str) -> str:
    return f"`careen {request.kind} {name} --end`"


async def wait_for(cluster: Cluster, name: str, is_reached: Callable[[NodeView], bool]) -> NodeView:
    """Waits until `is_reached`, and prints each change of phase or reason.

    Exit code 1 if the node fails or its Node is deleted. Without an answer it keeps waiting: the API server may run on
    the node that reboots.
    """
    told = ""
    while True:
        seen = await _read_node(cluster, name)
        if isinstance(seen, Gone):
            raise click.ClickException(f"the Node {name} was deleted")
        now = _state(seen) if seen is not None else "the API server does not answer; the command waits for an answer"
        if now != told:
            say(now)
        told = now
        if seen is not None and is_reached(seen):
            return seen
        if seen is not None and phase_of(seen) == Phase.FAILED:
            raise click.ClickException(f"{name} failed; `careen why {name}` shows the remedy")
        await cluster.clock.sleep(LOOK_SECONDS)


async def _read_node(cluster: Cluster, name: str) -> NodeView | Gone | None:
    try:
        return await read_node(cluster.api, name)
    except (Forbidden, Unauthorized):
        raise
    except ClusterError:
        return None


def _state(node: NodeView) -> str:
    reason = node.annotations.get(keys.REASON, "")
    return f"{node.name} is {phase_of(node)}{f': {reason}' if reason else ''}"


def is_at_rest(node: NodeView) -> bool:
    """careen is not working on the node."""
    return phase_of(node) not in {*WORKING, Phase.CLAIMING, Phase.SETTLING, Phase.FAILED}
