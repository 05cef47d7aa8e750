"""Who of the waiting goes next, whose turn it is, and how long the others may sleep.

Default order: oldest need first, zone by zone, control plane last and one at a time. Whoever releases or takes a claim lists the waiting
once and writes the next names into the lock; the others need to look only rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from careen.core import keys
from careen.core.lock import LockContent, free_slots
from careen.core.memory import Memory
from careen.core.observation import NodeView
from careen.core.policy import Budget, BudgetKind, Policy
from careen.core.progress import UnreadableProgress, from_annotation

NEXT_LOOK_SECONDS = 3.0              # the next start follows a release within five seconds
NAMED_LOOK_SECONDS = 10.0            # farther down the line: often enough to see the line move
PASSED_OVER_SECONDS = 60.0           # a named node that has not come by then loses its place
OTHERS_LOOK_SECONDS = 30.0
LOOKS_PER_SECOND = 6                 # over all waiting nodes; at two requests a look, 5,000 nodes stay under 20 requests/s
SPARE_NAMES = 12                     # named beyond the free slots: a name must be older than a sleeper's pause when its turn comes
NEXT_NAMES = 3                       # how many of the line look every three seconds

READY = "ready"
CONTROL_PLANE = Budget(kind=BudgetKind.CONTROL_PLANE, limit=1)
"""Control-plane nodes go one at a time, whatever the settings say."""


def budgets(policy: Policy) -> tuple[Budget, ...]:
    """The configured budgets and the one that always holds."""
    return (*policy.budgets, CONTROL_PLANE)


def groups(node: NodeView, policy: Policy) -> dict[str, int]:
    """The groups that the Node belongs to, each with the smallest limit any budget sets for it."""
    found: dict[str, int] = {}
    for budget in budgets(policy):
        if group := budget.group_of(node.labels):
            found[group] = min(budget.limit, found.get(group, budget.limit))
    return found


def next_names(waiters: Iterable[NodeView], content: LockContent, policy: Policy, *, zone: str = "", leave_out: str = "") -> tuple[str, ...]:
    """The ready nodes that should come next: those named already keep their place, then `zone` (the one at work) is finished first.

    Names whose groups have room beside the holders and the names before them come first.
    """
    candidates = sorted(
        (node for node in waiters if node.labels.get(keys.REBOOT_LABEL) == READY and node.name != leave_out and node.name not in content.holders),
        key=_key(waiters, content, zone),
    )
    fitting, others = _by_room(candidates, content, policy)
    return tuple(node.name for node in [*fitting, *others])[: line_length(content, policy)]


def line_length(content: LockContent, policy: Policy) -> int:
    """How many nodes should be named: enough for every free slot, and a few that already know they come after."""
    return max(1, free_slots(replace(content, is_paused=False), policy.concurrency)) + SPARE_NAMES


_Key = tuple[bool, int, bool, bool, str, str, str, str]


def _key(waiters: Iterable[NodeView], content: LockContent, zone: str) -> Callable[[NodeView], _Key]:
    named = content.next
    oldest: dict[str, str] = {}
    for node in waiters:
        oldest[node.zone] = min(oldest.get(node.zone, _NEVER), need_since(node))

    def key(node: NodeView) -> _Key:
        may_not_come = node.name in content.passed or not node.ready
        place = named.index(node.name) if node.name in named else len(named)
        return (may_not_come, place, node.is_control_plane, node.zone != zone, oldest.get(node.zone, _NEVER), node.zone, need_since(node), node.name)

    return key


_NEVER = "9999"


def need_since(node: NodeView) -> str:
    """When the node's need was first seen, RFC 3339; sorts last when its record does not say."""
    progress = from_annotation(node.annotations.get(keys.PROGRESS))
    return _NEVER if isinstance(progress, UnreadableProgress) or not progress.need_since else progress.need_since


def _by_room(candidates: list[NodeView], content: LockContent, policy: Policy) -> tuple[list[NodeView], list[NodeView]]:
    used: dict[str, int] = {}
    for entry in content.entries:
        for group in entry.groups:
            used[group] = used.get(group, 0) + 1
    fitting: list[NodeView] = []
    others: list[NodeView] = []
    for node in candidates:
        mine = groups(node, policy)
        if all(used.get(group, 0) < most for group, most in mine.items()):
            fitting.append(node)
            for group in mine:
                used[group] = used.get(group, 0) + 1
        else:
            others.append(node)
    return fitting, others


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Whether a node may come now; `places` is how many nodes of the list may, passed-over ones included."""

    is_ours: bool
    asks_waiters: bool               # nobody is named: the order among the ready nodes has to be looked up
    places: int
    memory: Memory
    passed: tuple[str, ...] = ()     # the named ones that had their minute and did not come


def whose_turn(name: str, content: LockContent, policy: Policy, memory: Memory, uptime: float) -> Turn:
    """Compare the names in the lock with our own watch of how long a slot has been free under them."""
    free = free_slots(content, policy.concurrency)
    if free == 0:
        return Turn(is_ours=False, asks_waiters=False, places=0, memory=replace(memory, turn_key="", turn_since=0.0))
    key = f"{content.next_at} {' '.join(content.next)} {' '.join(content.holders)}"
    if memory.turn_key != key:
        memory = replace(memory, turn_key=key, turn_since=uptime)
    places = free + int((uptime - memory.turn_since) // PASSED_OVER_SECONDS)
    if not content.next:
        return Turn(is_ours=False, asks_waiters=True, places=places, memory=memory)
    rank = content.next.index(name) if name in content.next else len(content.next)
    passed = tuple(each for each in content.next[: places - free] if each != name)
    return Turn(is_ours=rank < places, asks_waiters=False, places=places, memory=memory, passed=passed)


def look_again_seconds(name: str, content: LockContent, jitter: float) -> float:
    """How long a waiting node may sleep before it looks at the lock again."""
    if name in content.next:
        return NEXT_LOOK_SECONDS if content.next.index(name) < NEXT_NAMES else NAMED_LOOK_SECONDS
    return max(OTHERS_LOOK_SECONDS, content.waiting / LOOKS_PER_SECOND) * (0.75 + 0.5 * jitter)
