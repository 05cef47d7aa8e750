"""Which nodes a person means (`NODE...` or `-l SELECTOR`), the request on each Node, where its agent reads it, and the
wait for the outcome. `core/people/requests.py` defines the requests."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import click

from careen.cli.support.connection import Cluster, annotate_node, read_node_or_fail
from careen.cli.support.screen import BadInput, say
from careen.cluster.nodes import list_nodes, read_node
from careen.cluster.wire.errors import ClusterError, Forbidden, Unauthorized
from careen.core.facts import keys
from careen.core.facts.observation import Gone, NodeView, PersonRequest, RequestKind
from careen.core.facts.phases import UNDER_CLAIM, Phase
from careen.core.facts.selectors import Selector, SelectorError
from careen.core.people.requests import request_of, sentence, to_annotation
from careen.report.tables import listed
from scheduler_core.sentences import count_of
from scheduler_core.values import Value

LOOK_SECONDS = 2.0
LOOK_SECONDS_PER_NODE = 0.2  # at most five requests a second, however many nodes a person waits for

IDLE_LOOK = "an idle agent sees the request within seconds, or within five minutes if it stays awake"
_NO_ANSWER = "the API server does not answer; the command waits for an answer"


class Choice(Value):
    """The names or the selector of the command line."""

    names: tuple[str, ...]
    selector: Selector | None


def nodes_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `[NODE]... -l SELECTOR`; the command's argument `choice` is a `Choice`."""

    @click.argument("nodes", nargs=-1, metavar="[NODE]...")
    @selector_option("All nodes whose labels match, such as topology.kubernetes.io/zone=a, instead of NODE.")
    @functools.wraps(function)
    def command(*given: Any, nodes: tuple[str, ...], selector: Selector | None, **more: Any) -> Any:
        if nodes and selector:
            raise click.UsageError("give either NODE or --selector, not both")
        if not nodes and not selector:
            raise click.UsageError("name at least one NODE, or choose nodes with --selector")
        return function(*given, choice=Choice(tuple(dict.fromkeys(nodes)), selector), **more)

    return command


def selector_option(about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `--selector`, `-l`, which never matches every node by mistake."""
    return click.option("--selector", "-l", callback=_parsed, metavar="SELECTOR", help=about)


def _parsed(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Selector | None:
    """An empty text, such as a variable that a script did not set, would match every node."""
    if text is None:
        return None
    try:
        found = Selector.parse(text)
    except SelectorError as error:
        raise click.BadParameter(str(error)) from error
    if not found.requirements:
        raise click.BadParameter("the selector is empty and would match every node")
    return found


async def chosen(
    cluster: Cluster, choice: Choice, *, concerns: Callable[[NodeView], bool] = lambda _: True, what: str = ""
) -> tuple[NodeView, ...]:
    """The chosen Nodes. Exit code 2 if one does not exist or if the selector matches none, before anything is written.

    Of the nodes that a selector matches, only those that the command `concerns`; `what` says why the others are left
    out. A named node is never left out.
    """
    if choice.selector is None:
        return tuple([await read_node_or_fail(cluster, name) for name in choice.names])
    matching = await list_nodes(cluster.api, selector=choice.selector)
    if not matching:
        raise BadInput(f"no Node matches the selector {choice.selector.text}")
    found = tuple(node for node in matching if concerns(node))
    if left_out := [node.name for node in matching if not concerns(node)]:
        say(f"Nothing to do for {count_of(len(left_out), 'node')} ({what}): {listed(left_out)}.")
    return found


async def for_each(nodes: tuple[NodeView, ...], work: Callable[[NodeView], Awaitable[object]]) -> tuple[NodeView, ...]:
    """Calls `work` for each node, one after the other. Returns those for which it succeeded.

    With several nodes, a failure for one is told and does not stop the others. Exit code 2 if all are refused.
    """
    if len(nodes) == 1:
        await work(nodes[0])
        return nodes
    done, failures = [], []
    for node in nodes:
        try:
            await work(node)
        except click.ClickException as error:
            say(f"Error: {error.message}", err=True)
            failures.append(error)
        else:
            done.append(node)
    if failures and len(failures) == len(nodes) and all(isinstance(each, BadInput) for each in failures):
        raise BadInput(f"nothing was changed on these {len(nodes)} nodes")
    return tuple(done)


async def for_all(nodes: tuple[NodeView, ...], work: Callable[[NodeView], Awaitable[object]], what: str) -> None:
    """`for_each` as the last step of a command: `end_with` the failures."""
    done = await for_each(nodes, work)
    end_with(len(nodes) - len(done), len(nodes), what)


def end_with(failed: int, total: int, what: str) -> None:
    """Exit code 1 if some of several nodes failed."""
    if failed:
        raise click.ClickException(f"{failed} of {count_of(total, 'node')} {what}")


async def ask(cluster: Cluster, name: str, request: PersonRequest) -> NodeView:
    """Writes the request. Exit code 2 if the node has failed, or if its Node has a request of another kind."""

    def change(seen: NodeView) -> dict[str, str | None]:
        if seen.shown_phase == Phase.FAILED:
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


async def wait_for_each(
    cluster: Cluster, nodes: Iterable[NodeView], is_reached: Callable[[NodeView], bool]
) -> dict[str, NodeView | click.ClickException]:
    """Waits until `is_reached` for each node, and prints each change of phase or reason. By node: the Node, or the
    error if the node fails or its Node is deleted.

    Without an answer it keeps waiting: the API server may run on a node that reboots.
    """
    told: dict[str, str] = {}
    found: dict[str, NodeView | click.ClickException] = {}
    left = [node.name for node in nodes]
    while left:
        for name in left:
            seen = await _read_node(cluster, name)
            if isinstance(seen, Gone):
                found[name] = click.ClickException(f"the Node {name} was deleted")
                continue
            now = _state(seen) if seen is not None else _NO_ANSWER
            if now != told.get(name):
                say(now)
            told[name] = now
            if seen is not None and is_reached(seen):
                found[name] = seen
            elif seen is not None and seen.shown_phase == Phase.FAILED:
                found[name] = click.ClickException(f"{name} failed; `careen why {name}` shows the remedy")
        left = [name for name in left if name not in found]
        if left:
            await cluster.clock.sleep(max(LOOK_SECONDS, LOOK_SECONDS_PER_NODE * len(left)))
    return found


def reached(found: NodeView | click.ClickException) -> NodeView:
    """What `wait_for_each` found for one node. Raises its error."""
    if isinstance(found, click.ClickException):
        raise found
    return found


async def _read_node(cluster: Cluster, name: str) -> NodeView | Gone | None:
    try:
        return await read_node(cluster.api, name)
    except (Forbidden, Unauthorized):
        raise
    except ClusterError:
        return None


def _state(node: NodeView) -> str:
    reason = node.annotations.get(keys.REASON, "")
    return f"{node.name} is {node.shown_phase}{f': {reason}' if reason else ''}"


def is_at_rest(node: NodeView) -> bool:
    """careen is not working on the node."""
    return node.shown_phase not in {*UNDER_CLAIM, Phase.FAILED}
