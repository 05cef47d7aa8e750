"""`careen lock show|pause|resume|release`.

A command that changes the lock prints the change, and writes with the resourceVersion that it has read.
"""

from __future__ import annotations

from collections.abc import Callable

import click

from careen.cli.support.connection import TRIES, Cluster, read_lock
from careen.cli.support.options import cluster_command, output_option, show
from careen.cli.support.screen import BadInput, SuggestingGroup, did_you_mean, say
from careen.cluster.nodes import read_node
from careen.cluster.wire.writes import Dropped, Landed, Rejected, StillUnclear
from careen.core.actions import WriteLock
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import WORKING
from careen.core.lock import changes, notation
from careen.core.lock.content import Entry, Garbage, LockContent
from careen.core.lock.reading import LockReading
from careen.report.lock_report import lock_json, lock_text
from careen.report.tables import listed, paragraph


@click.group(name="lock", cls=SuggestingGroup)
def lock() -> None:
    """Show the lock, pause the cluster, resume it, or free a claim by hand."""


@lock.command(name="show")
@output_option
@cluster_command
async def show_lock(cluster: Cluster, *, output: str) -> None:
    """Show which nodes hold a claim, whether the cluster is paused, and which node is next."""
    reading = await read_lock(cluster)
    state = reading.content
    nodes = await _holders(cluster, state)
    now = cluster.clock.now()

    def text(width: int | None) -> str:
        lines = [lock_text(state, nodes, now, where=cluster.lock_daemonset, width=width)]
        if isinstance(state, Garbage):
            lines += ["", paragraph(f"The lock contains this text: {reading.text}"), _how_to_clear(cluster)]
        return "\n".join(lines)

    show(output, text=text, value=lambda: lock_json(state, reading.text))


@lock.command()
@click.option("--reason", default="", metavar="TEXT", help="The reason for the pause; `careen why` shows this reason.")
@cluster_command
async def pause(cluster: Cluster, *, reason: str) -> None:
    """Keep every node from starting a reboot. A draining node undoes its drain; a rebooting node finishes."""
    # Line breaks become spaces, because every output shows the reason inside a line.
    reason = " ".join(reason.split())

    def paused(content: LockContent) -> LockContent | None:
        if content.is_paused and (content.pause_reason or not reason):
            say(_paused_already(content.pause_reason, reason))
            return None
        if content.holders:
            say(
                f"The claims of {listed(content.holders)} stay in the lock: a draining node undoes its drain, "
                "and a rebooting node finishes."
            )
        return changes.pause(content, reason, content.max_owners)

    if await _rewrite(cluster, "pause", paused):
        say("The lock is paused: no node begins a reboot until `careen lock resume`.")


@lock.command()
@cluster_command
async def resume(cluster: Cluster) -> None:
    """End the pause, so that nodes may reboot again."""

    def resumed(content: LockContent) -> LockContent | None:
        if not content.is_paused:
            say("The lock is not paused; nothing was changed.")
            return None
        if content.pause_reason:
            say(f"The lock was paused for this reason: {content.pause_reason}.")
        return changes.resume(content)

    if await _rewrite(cluster, "resume", resumed):
        say("The lock is no longer paused: nodes may reboot again.")


@lock.command()
@click.argument("node")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask for confirmation. This also frees the claim of a node that is draining or rebooting.",
)
@cluster_command
async def release(cluster: Cluster, *, node: str, yes: bool) -> None:
    """Free the claim of NODE by hand, so that the next node may start. Use it only for a node that failed or is
    gone."""
    seen = await read_node(cluster.api, node)
    working = isinstance(seen, NodeView) and seen.annotations.get(keys.PHASE) in WORKING
    if working and not yes:
        assert isinstance(seen, NodeView)
        _entries_of(cluster, node, _understood(cluster, await read_lock(cluster)))
        say(
            f"{node} is {seen.annotations[keys.PHASE]}: the node needs its claim in the lock and will take a claim "
            "again. Until then another node may begin a reboot, so one node too many may be down. `careen hold "
            f"{node}` stops the node properly."
        )
        click.confirm("Free the claim anyway?", abort=True)

    def released(content: LockContent) -> LockContent | None:
        entries = _entries_of(cluster, node, content)
        taken = f"at {entries[0].created}" if entries[0].created else "at an unknown time"
        say(f"This command frees the claim that {node} took {taken}.")
        return changes.release_by_hand(content, node)

    if await _rewrite(cluster, "free the claim by hand", released):
        say(f"The claim of {node} was removed from the lock: the next node may take a claim.")


def _entries_of(cluster: Cluster, node: str, content: LockContent) -> tuple[Entry, ...]:
    """The node's entries, at least one. Raises BadInput if it holds no claim."""
    if entries := content.entries_of(node):
        return entries
    problem = f"{node} holds no claim in the lock of {cluster.lock_daemonset}"
    if content.holders:
        problem += f"; the lock is held by {listed(content.holders)}"
    raise BadInput(problem + did_you_mean(node, content.holders))


def _paused_already(old_reason: str, given: str) -> str:
    """The lock keeps its reason: a second person must not overwrite the first person's."""
    if not old_reason:
        return "The lock is already paused, without a reason; nothing was changed."
    already_paused = (
        f"The lock is already paused for this reason: {old_reason}. The reason stays, and nothing was changed."
    )
    if given in ("", old_reason):
        return already_paused
    return f"{already_paused} To give another reason, run `careen lock resume` first."


async def _rewrite(cluster: Cluster, purpose: str, change: Callable[[LockContent], LockContent | None]) -> bool:
    """Writes what `change` makes of the content. If nothing is to be written, `change` says why and returns None; then
    False."""
    for _ in range(TRIES):
        reading = await read_lock(cluster)
        wanted = change(_understood(cluster, reading))
        if wanted is None:
            return False
        outcome = await cluster.lock.write(_write(purpose, reading, wanted))
        if isinstance(outcome, Landed):
            return True
        if isinstance(outcome, Rejected | Dropped):
            raise click.ClickException(f"the lock was not changed: {outcome.why}")
        if isinstance(outcome, StillUnclear):
            raise click.ClickException(
                f"it is not known whether the lock was changed: {outcome.why}; check the lock with `careen lock show`"
            )
        say("Another client changed the lock at the same moment; this command reads the lock again.")
    raise click.ClickException(
        f"other clients changed the lock {TRIES} times while this command tried to write it; this command changed "
        "nothing, try again"
    )


def _understood(cluster: Cluster, reading: LockReading) -> LockContent:
    if isinstance(reading.content, Garbage):
        raise click.ClickException(
            f"the lock cannot be understood ({reading.content.why}), so no reboot may start; {_how_to_clear(cluster)}"
        )
    return reading.content


def _write(purpose: str, reading: LockReading, wanted: LockContent) -> WriteLock:
    return WriteLock(
        purpose=purpose,
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=notation.render(wanted),
    )


async def _holders(cluster: Cluster, state: LockContent | Garbage) -> dict[str, NodeView]:
    names = state.holders if isinstance(state, LockContent) else ()
    found = [await read_node(cluster.api, name) for name in names]
    return {node.name: node for node in found if isinstance(node, NodeView)}


def _how_to_clear(cluster: Cluster) -> str:
    return (
        "once you know that no node drains or reboots, clear the lock with "
        f"`kubectl -n {cluster.namespace} annotate daemonset {cluster.name} {cluster.annotation}-`"
    )
