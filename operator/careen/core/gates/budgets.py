"""Refuses if too many nodes of the cluster or of a group would be down, if nodes of two zones would be down at once
(--order=zone), or if the control plane would lose its quorum.

Nodes that are down for other reasons (not ready, or cordoned by another client) count too; with --count-cordoned=false
not those that are ready and only cordoned. The node itself never counts as already down.
"""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.facts import keys
from careen.core.facts.observation import Fleet, NodeView
from careen.core.facts.phases import WORKING, Evidence, Phase
from careen.core.facts.policy import Budget, Order
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.lock.content import LockContent, limit
from careen.core.lock.groups import groups
from careen.core.node import cordons
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate("budgets", when=BEFORE_THE_CORDON, cost=Cost.COSTLY, needs={Evidence.FLEET})
def budgets(situation: Situation) -> No | None:
    content, fleet = situation.lock, situation.seen.fleet
    if not isinstance(content, LockContent):
        return None  # the gate `hold` refuses such a lock
    if not isinstance(fleet, Fleet):
        return No(Code.FLEET_UNKNOWN, f"careen cannot tell which nodes are down: {fleet.why}")
    down = others_down(situation.node.name, content, fleet, count_cordoned=situation.policy.count_cordoned)
    most = limit(content, situation.policy.concurrency)
    if len(down) + 1 > most:
        holders = [name for name in content.holders if name != situation.node.name]
        if len(holders) >= most:
            verb = "holds" if len(holders) == 1 else "hold"
            return No(Code.LIMIT_REACHED, f"{_list(holders)} {verb} a claim; the limit of claims is {most}")
        return No(
            Code.NODES_DOWN,
            f"{_list(down.values())}; with this node {len(down) + 1} nodes would be down; the limit is {most}",
            down=tuple(down),
            lacks=len(down) + 1 - most,
        )
    return (
        _group_refusal(situation, content, fleet, down)
        or _zone_refusal(situation, content, fleet)
        or _quorum_refusal(situation, content, fleet)
    )


def others_down(own: str, content: LockContent, fleet: Fleet, *, count_cordoned: bool = True) -> dict[str, str]:
    """The names of the other nodes that are down or about to go down, each with a sentence that says why."""
    down: dict[str, str] = {}
    for node in fleet.nodes:
        if works(node):
            down[node.name] = f"{node.name} was taken down by careen"
        elif not node.ready:
            down[node.name] = f"{node.name} is not ready"
        elif node.unschedulable and not cordons.is_foreign(node):
            down[node.name] = f"{node.name} is still cordoned by careen"
        elif node.unschedulable and count_cordoned:
            not_careen = cordons.foreign_author(node)
            down[node.name] = f"{node.name} is cordoned by {not_careen}, not by careen"
    down.update({name: f"{name} holds a claim" for name in content.holders})
    down.pop(own, None)
    return dict(sorted(down.items()))


def works(node: NodeView) -> bool:
    """Whether careen has taken the node down, or may have, by the record on the Node.

    The label careen.dev/reboot can replace an unreadable record, because the same patch writes both. A waiting node has
    `required` or `ready`, so it does not count as down.
    """
    progress = node.record
    if isinstance(progress, UnreadableProgress):
        return node.labels.get(keys.REBOOT_LABEL) in {"in-progress", "failed"}
    if not progress.phase:
        return node.labels.get(keys.REBOOT_LABEL) == "in-progress"  # the record of a working node was removed
    if not progress.claim or progress.is_releasing:
        return False
    return progress.phase in WORKING | {Phase.SETTLING, Phase.FAILED}


def _group_refusal(situation: Situation, content: LockContent, fleet: Fleet, down: dict[str, str]) -> No | None:
    nameless = {entry.node for entry in content.entries if entry.is_nameless}  # may be of any group
    labelled = {node.name: set(groups(node, situation.policy)) for node in fleet.nodes}
    for entry in content.entries:
        labelled.setdefault(entry.node, set()).update(entry.groups)
    for group, (most, allowed) in sorted(_limits(situation, fleet).items()):
        members = {name: why for name, why in down.items() if group in labelled.get(name, ()) or name in nameless}
        if (lacks := len(members) + 1 - most) > 0:
            sentence = f"{_list(members.values())}; the budget {group} allows {allowed}"
            return No(Code.BUDGET_SPENT, sentence, about=(f"budget {group}",), down=tuple(members), lacks=lacks)
    return None


def _limits(situation: Situation, fleet: Fleet) -> dict[str, tuple[int, str]]:
    """How many nodes of each of the node's groups may be down, as a number and as text, such as `(3, "3 (10% of
    30)")`."""
    found = {group: (most, str(most)) for group, most in groups(situation.node, situation.policy).items()}
    for budget in situation.policy.budgets:
        group = budget.group_of(situation.node.labels)
        if budget.percent is None or group is None:
            continue
        members = _size(budget, group, fleet)
        if (most := budget.most(members)) <= found[group][0]:
            found[group] = most, f"{most} ({budget.percent}% of {members})"
    return found


def _size(budget: Budget, group: str, fleet: Fleet) -> int:
    if fleet.group_sizes is not None:
        return fleet.group_sizes.get(group, 0)
    return sum(1 for node in fleet.nodes if budget.group_of(node.labels) == group)


def _zone_refusal(situation: Situation, content: LockContent, fleet: Fleet) -> No | None:
    """With --order=zone, refuses while a node of another or an unknown zone holds a claim or was taken down by
    careen."""
    if situation.policy.order is not Order.ZONE:
        return None
    zones: dict[str, str | None] = {entry.node: entry.zone for entry in content.entries}
    zones.update({node.name: node.zone for node in fleet.nodes if works(node) or node.name in zones})
    elsewhere = sorted(
        name for name, zone in zones.items() if name != situation.node.name and zone != situation.node.zone
    )
    if not elsewhere:
        return None
    return No(
        Code.ZONE_AT_WORK,
        f"nodes of another zone hold claims: {_list(elsewhere)}; --order=zone finishes one zone before the next",
    )


def _quorum_refusal(situation: Situation, content: LockContent, fleet: Fleet) -> No | None:
    if not situation.node.is_control_plane:
        return None
    members = {node.name: node for node in fleet.nodes if node.is_control_plane}
    needed = len(members) // 2 + 1
    up = [
        name
        for name, node in members.items()
        if name != situation.node.name and node.ready and not works(node) and name not in content.holders
    ]
    if len(members) < 3 or len(up) >= needed:  # one or two members have no quorum to keep: any reboot loses it
        return None
    return No(
        Code.QUORUM,
        f"without this node {len(up)} of {len(members)} control-plane nodes would be up; {needed} are needed",
        down=tuple(sorted(members.keys() - {*up, situation.node.name})),
        lacks=needed - len(up),
    )


def _list(texts: Iterable[str]) -> str:
    return first_few(list(texts))
