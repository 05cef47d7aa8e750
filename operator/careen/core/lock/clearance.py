"""Which nodes may take a claim now, by the line and by how long a slot has been free."""

from __future__ import annotations

from careen.core.facts.memory import Memory
from careen.core.facts.policy import Order, Policy
from careen.core.lock.content import LockContent, free_slots
from careen.core.lock.pauses import gather_seconds
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

PASSED_OVER_SECONDS = 60.0  # a named node that has not started by then loses its place


class Clearance(Value, kw_only=True):
    """Whether this node may take a claim now. `places`: how many nodes at the head of the line may, one more for each
    minute in which no node takes one."""

    is_allowed: bool
    asks_waiters: bool  # no node is named: the step has to list the waiting nodes to know the order
    places: int
    memory: Memory
    gathers_for: float = 0.0  # seconds until a new roll-out starts; until then other nodes may become ready
    passed: tuple[str, ...] = ()  # the named nodes that had a minute each and did not start


def start_of(name: str, content: LockContent, policy: Policy, memory: Memory, uptime: float) -> Clearance:
    """The clearance of the node `name`, by its place in the line and by how long this process has seen a free slot."""
    free = free_slots(content, policy.concurrency)
    if free == 0:
        return Clearance(is_allowed=False, asks_waiters=False, places=0, memory=unwatched(memory))
    key = hand_over_key(content)
    if memory.line.key != key:
        memory = replace(memory, line=replace(memory.line, key=key, since=uptime))
    minutes = int((uptime - memory.line.since) // PASSED_OVER_SECONDS)
    if not content.line.names:
        left = 0.0 if content.holders else max(0.0, memory.line.since + gather_seconds(memory.agents) - uptime)
        return Clearance(is_allowed=False, asks_waiters=True, places=free + minutes, memory=memory, gathers_for=left)
    free, places = _places(content, policy, free, minutes)
    rank = content.line.names.index(name) if name in content.line.names else len(content.line.names)
    passed = tuple(each for each in content.line.names[: places - free] if each != name)
    return Clearance(is_allowed=rank < places, asks_waiters=False, places=places, memory=memory, passed=passed)


def _places(content: LockContent, policy: Policy, free: int, minutes: int) -> tuple[int, int]:
    """How many nodes at the head of the line may try to take a claim in the first minute, and how many now. 2 free
    slots give (2, 5) after 3 minutes, but the lock accepts 2 claims. With --order=zone and holders, both numbers count
    only nodes in the holders' zone."""
    if policy.order is not Order.ZONE or content.line.abreast is None:
        return free, free + minutes
    if content.holders:
        return min(free, content.line.abreast), min(free + minutes, content.line.abreast)
    free = min(free, content.line.abreast or free)
    return free, free + minutes


def unwatched(memory: Memory) -> Memory:
    """Forgets since when a slot has been free: a node that does not wait for one measures anew when it waits again."""
    return replace(memory, line=replace(memory.line, key="", since=0.0))


def hand_over_key(content: LockContent) -> str:
    """Changes with the line and the holders: a waiting node then measures anew how long a slot has been free."""
    return f"{content.line.at} {' '.join(content.line.names)} {' '.join(content.holders)}"
