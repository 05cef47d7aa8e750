"""The journal of a simulated roll-out, and its verdict. The rules are those of `drydock.checker`."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

from careen.core.facts.policy import Order
from drydock.checker import judge
from drydock.checker.journal import AgentEvent, Fact, Journal, in_order
from drydock.server.audit import writes_of

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

_FIRST_PAUSE_SECONDS = 900.0
"""The first pause of a cluster whose days have 24 hours; the fleet's is shorter, and so are its days."""


def journal_of(world: World, *, taint_seconds: float = 10.0, answer_seconds: float = 0.0) -> Journal:
    agents = (
        *(AgentEvent(at=at, node=node, what="died") for at, node in world.agents.deaths if at < world.now),
        *(AgentEvent(at=e.at, node=e.node, what="sent", reason=e.reason) for e in world.agents.sent_events),
        *(AgentEvent(at=world.now, node=node, what="broke") for node in world.agents.broken_turns()),
        *(AgentEvent(at=at, node=node, what="ordered") for at, node in world.orders),
    )
    pause_seconds = min(world.policy(name).failure_backoff_seconds for name in world.shape.names)
    return Journal(
        entries=in_order(writes_of(world.server.store.journal), world.fleet.log, agents),
        concurrency=world.shape.concurrency,
        knows=frozenset(Fact),
        is_by_zone=world.shape.order is Order.ZONE,
        taint_seconds=taint_seconds,
        reboot_deadline_seconds=min(world.policy(name).reboot_deadline_seconds for name in world.shape.names),
        pause_seconds=pause_seconds,
        day_seconds=pause_seconds / _FIRST_PAUSE_SECONDS * 86400,
        answer_seconds=answer_seconds,
        until=world.now,
        initial=world.initial,
        groups={name: world.shape.groups(name) for name in world.shape.names},
    )


MOST_WRITES_A_MINUTE = 40
"""What one agent may write on its Node and into the lock in any minute, whatever others do to its writes."""


def too_many_writes(world: World) -> list[str]:
    found, by_node = [], defaultdict(list)
    for at, node in world.agents.writes:
        by_node[node].append(at)
    for node, times in by_node.items():
        most = max(bisect_right(times, at + 60.0) - number for number, at in enumerate(times))
        if most > MOST_WRITES_A_MINUTE:
            found.append(
                f"writes: the agent of {node} wrote {most} times in a minute; the limit is {MOST_WRITES_A_MINUTE}"
            )
    return found


def verdict(world: World, *, but: Collection[str] = (), **leniency: float) -> list[str]:
    """A sentence for every breach of a rule that is not in `but`: faults or people of this roll-out break those."""
    judgement = judge(journal_of(world, **leniency))
    assert not judgement.unjudged, judgement.unjudged
    return (
        [f"broken: {each}" for each in world.broken]
        + too_many_writes(world)
        + [f"asleep: {each}" for each in world.agents.breaches]
        + [
            f"{broken.rule.name}: {breach.at:.2f}: {breach.sentence}"
            for broken in judgement.broken
            if broken.rule.name not in but
            for breach in broken.breaches
        ]
    )
