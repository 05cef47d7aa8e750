"""What keeps the nodes of a plan from rebooting, and which change to try next. The plan's simulation then tells what
the change buys."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from datetime import time
from enum import StrEnum

from careen.core.facts.policy import Policy
from careen.core.facts.windows import Window
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.simulation.timeline import Obstacle, Timeline
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

_LONGER_SECONDS = 1800.0
MOST_STEPS = 5
"""How many changes a plan tries, one after another: each costs as much as the plan itself."""

_BUDGETS = re.compile(r"^the disruption budgets? (.+)$")
_DOWN = re.compile(r"(?:^|; )([a-z0-9][a-z0-9.-]*) is (?:still )?cordoned")


class ChangeKind(StrEnum):
    """What a person can change."""

    BUDGET = "budget"  # one more disruption allowed
    UNCORDON = "uncordon"
    WINDOW = "window"  # 30 minutes more
    NODE = "node"  # one more node like `subject`
    ALERT = "alert"  # no change: to wait until it is over


class PlanChange(Value, kw_only=True):
    """One change. `subject` is the budget's namespace/name or the node; of a window it is empty."""

    kind: ChangeKind
    subject: str = ""

    @property
    def sentence(self) -> str:
        """As an order to a person."""
        match self.kind:
            case ChangeKind.BUDGET:
                return f"allow one more disruption in the budget {self.subject} (or add a replica)"
            case ChangeKind.UNCORDON:
                return f"uncordon {self.subject}"
            case ChangeKind.WINDOW:
                return "lengthen the maintenance windows by 30m"
            case ChangeKind.NODE:
                return f"add one node like {self.subject}"
            case ChangeKind.ALERT:
                return f"wait until the alert {self.subject} is over"


LONGER_WINDOWS = PlanChange(kind=ChangeKind.WINDOW)


class Bought(Value, kw_only=True):
    """What a set of changes buys on top of those before it, by the plan's simulation: nodes that reboot in addition,
    and by how many seconds the roll-out ends earlier (negative: later, with more reboots)."""

    changes: tuple[PlanChange, ...]
    nodes: int
    seconds: int


class Barrier(Value, kw_only=True):
    """One cause for which nodes of a plan do not reboot, and the nodes that it holds. `changes` must all be made;
    `remedy` is the rule's own."""

    rule: str
    subject: str
    sentence: str
    nodes: tuple[str, ...]
    changes: tuple[PlanChange, ...] = ()
    remedy: str = ""


def barriers(timeline: Timeline) -> tuple[Barrier, ...]:
    """The causes, those with most nodes first."""
    groups: dict[tuple[str, str], list[tuple[str, Obstacle]]] = defaultdict(list)
    for left in timeline.left:
        groups[left.obstacle.rule, left.obstacle.subject].append((left.node, left.obstacle))
    found = [
        Barrier(
            rule=rule,
            subject=subject,
            sentence=members[0][1].sentence,
            nodes=tuple(name for name, _ in members),
            changes=changes_for(members[0][1], members[0][0]),
            remedy=members[0][1].remedy,
        )
        for (rule, subject), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-len(each.nodes), each.rule, each.subject)))


def changes_for(obstacle: Obstacle, node: str) -> tuple[PlanChange, ...]:
    """The changes that together answer the obstacle; () if no change of this kind does."""
    if budgets := _BUDGETS.match(obstacle.subject):
        return tuple(PlanChange(kind=ChangeKind.BUDGET, subject=name) for name in budgets[1].split(", "))
    if cordoned := _DOWN.findall(obstacle.subject):
        return tuple(PlanChange(kind=ChangeKind.UNCORDON, subject=name) for name in dict.fromkeys(cordoned))
    if obstacle.subject.startswith("no room for"):
        return (PlanChange(kind=ChangeKind.NODE, subject=node),)
    if obstacle.rule == "maintenance-window" and obstacle.subject == "outside the window":
        return (LONGER_WINDOWS,)
    return ()


def next_changes(timeline: Timeline, tried: Collection[tuple[PlanChange, ...]]) -> tuple[PlanChange, ...]:
    """The set of changes that should free most nodes for each change. A node with two causes counts only for a set
    that answers both. () if nothing is left to try."""
    wanted: dict[tuple[PlanChange, ...], int] = defaultdict(int)
    if timeline.closings and (LONGER_WINDOWS,) not in tried:
        held = sum(1 for left in timeline.left if changes_for(left.obstacle, left.node) != (LONGER_WINDOWS,))
        wanted[LONGER_WINDOWS,] += max(0, timeline.closings[0].left - held)
    for barrier in barriers(timeline):
        if barrier.changes and barrier.changes not in tried:
            wanted[barrier.changes] += len(barrier.nodes)
    covered = {
        changes: sum(number for others, number in wanted.items() if set(others) <= set(changes)) for changes in wanted
    }
    return max(
        (each for each in covered if covered[each]),
        key=lambda changes: (covered[changes] / len(changes), -len(changes), changes[0].subject),
        default=(),
    )


def changed(snapshot: Snapshot, changes: Collection[PlanChange]) -> Snapshot:
    """The snapshot after the changes of its objects. A window is no object."""
    budgets = {each.subject for each in changes if each.kind is ChangeKind.BUDGET}
    for each in changes:
        if each.kind is ChangeKind.UNCORDON and snapshot.columns.row_of.get(each.subject) is not None:
            snapshot = snapshot.with_node_uncordoned(each.subject)
        if each.kind is ChangeKind.NODE:
            snapshot = _with_one_more(snapshot, each.subject)
    if budgets:
        widened = tuple(_widened(each) if each.key in budgets else each for each in snapshot.objects.budgets)
        snapshot = snapshot.with_objects(budgets=widened)
    return snapshot


def merged(found: Collection[Bought]) -> tuple[Bought, ...]:
    """In the order of the simulations, which begins with the change that should free most. A change that only uncovers
    another cause joins the next one, which buys the nodes of both; behind the last it is left out."""
    pending: tuple[PlanChange, ...] = ()
    seconds = 0
    sets = []
    for each in found:
        if each.nodes <= 0 and each.seconds <= 0:
            pending, seconds = (*pending, *each.changes), seconds + each.seconds
            continue
        sets.append(Bought(changes=(*pending, *each.changes), nodes=each.nodes, seconds=each.seconds + seconds))
        pending, seconds = (), 0
    return tuple(sets)


def lengthened(policy: Policy) -> Policy:
    """With every maintenance window 30 minutes longer."""
    windows = tuple(
        replace_value(
            each,
            opens=longer(each.opens)
            if isinstance(each.opens, Window)
            else replace_value(each.opens, seconds=each.opens.seconds + _LONGER_SECONDS),
        )
        for each in policy.windows
    )
    return replace_value(policy, window=longer(policy.window), windows=windows)


def longer(window: Window) -> Window:
    """Until 30 minutes later. The last minute of a day stays the end of that day."""
    end = window.end.hour * 60 + window.end.minute + 30
    closes = time(23, 59, 59) if end >= 24 * 60 and window.end > window.start else time(end // 60 % 24, end % 60)
    return replace_value(window, end=closes)


def _widened(budget: DisruptionBudget) -> DisruptionBudget:
    desired = max(0, budget.desired_healthy - 1)
    allowed = max(budget.disruptions_allowed, budget.current_healthy - desired)
    return replace_value(budget, desired_healthy=desired, disruptions_allowed=allowed)


def _with_one_more(snapshot: Snapshot, name: str) -> Snapshot:
    node = snapshot.node(name)
    number = sum(1 for each in snapshot.nodes if each.name.startswith(f"{name}-more-"))
    new = f"{name}-more-{number + 1}"
    labels = {**node.labels, "kubernetes.io/hostname": new}
    return snapshot.with_node_added(
        replace_value(node, name=new, uid=new, labels=labels, unschedulable=False, taints=(), annotations={})
    )
