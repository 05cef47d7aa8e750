"""What a person should consider before the roll-out, each with what helps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from careen.plan.unblocking import Barrier, barriers
from careen.report.plan.values import Plan, instant, waited
from careen.report.tables import listed
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Wait
from scheduler_core.values import Value


class Risk(Value, kw_only=True):
    """What a person should consider before the roll-out."""

    what: str
    remedy: str


def risks(plan: Plan) -> list[Risk]:
    """The risks, worst first."""
    timeline = plan.timeline
    found = [
        Risk(what=f"{listed(each.nodes)} cannot reboot: {each.sentence}", remedy=_remedy_of(each))
        for each in barriers(timeline)
    ]
    if undone := timeline.undone:
        found.append(
            Risk(
                what=f"the agents would undo {count_of(len(undone), 'drain')} "
                f"({listed([visit.node for visit in undone])}): {undone[0].undone}",
                remedy="Start earlier, lengthen the window by the time of one drain, or set --late-policy=reboot.",
            )
        )
    if timeline.closings:
        first = timeline.closings[0]
        # nodes that something else holds would not have rebooted in a longer window either
        others = sum(1 for left in timeline.left if left.obstacle.rule not in {"maintenance-window", "time"})
        by_window = first.left - others
    if timeline.closings and by_window > 0:
        found.append(
            Risk(
                what=f"the window ends at {instant(plan, first.at)} with {count_of(by_window, 'node')} still to reboot",
                remedy="Lengthen the window, or raise --concurrency as far as the budgets allow.",
            )
        )
    for node, waits in _by_node(timeline.pending):
        longest = max(waits, key=lambda wait: wait.seconds(timeline.ends))
        found.append(
            Risk(
                what=f"draining {node} leaves {listed([wait.pod for wait in waits], most=3)} without room, "
                f"{waited(timeline, longest)}: {longest.why.rstrip('.')}",
                remedy=f"Add room or scale down beforehand; `careen forecast {node}` shows which single change "
                f"would make room for each pod, and with `--with-nodes {node}=1` says whether more nodes would help.",
            )
        )
    if plan.ranges and plan.ranges.not_clean and timeline.is_clean:
        found.append(
            Risk(
                what=f"with {plan.ranges.not_clean} of {plan.ranges.seeds} seeds, the plan has a problem, such as a "
                "node that does not reboot in the first window or a pod that finds no room",
                remedy="Leave more room on the nodes, or lengthen the window. This plan shows a simulation without "
                "problems. In the real roll-out, a node may not reboot in the first window, or a pod may find no room.",
            )
        )
    if timeline.slow:
        found.append(
            Risk(
                what=f"the drains wait until what refuses the eviction of {listed(timeline.slow, most=3)} now "
                "allows it; the plan assumes that this takes no time",
                remedy="Check that the operators of these pods run. A drain that they hold up is undone after half an "
                "hour without progress.",
            )
        )
    if timeline.lost:
        found.append(
            Risk(
                what=f"{listed(timeline.lost)} will not be created again: they have no controller, or their Job has "
                "no retry left",
                remedy="Recreate these pods by hand, give them a controller, or let their Job ignore evictions "
                "(podFailurePolicy).",
            )
        )
    if timeline.unknown:
        found.append(
            Risk(
                what=f"the simulation cannot say where {listed(timeline.unknown)} would go",
                remedy="Give the configuration of these pods' scheduler with --scheduler-config, or check by hand "
                "whether other nodes can hold the pods.",
            )
        )
    return found


def _by_node(waits: Sequence[Wait]) -> list[tuple[str, list[Wait]]]:
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in waits:
        groups[wait.node].append(wait)
    return list(groups.items())


_REMEDIES: Mapping[str, str] = {
    "hold": "Lift the hold with `careen unhold` when it is no longer needed.",
    "maintenance-window": "Widen the maintenance window, or annotate the node with careen.dev/reboot-now.",
    "minimum-interval": "Wait for the end of the interval, or lower --minimum-interval.",
    "budgets": "Bring the down nodes back into service, or raise the budget.",
    "protected-pods": "Wait until the pods have finished, or set --protected-pods=evict.",
    "lost-pods": "Wait until the pods have finished, or delete them.",
    "dry-run-evictions": "Add a replica, or relax the disruption budget that `careen forecast` names.",
    "time": "Simulate more days with --days.",
}


def _remedy_of(barrier: Barrier) -> str:
    if barrier.remedy:
        return barrier.remedy.replace("NODE", "NODE" if len(barrier.nodes) > 1 else "the node")
    return _REMEDIES.get(barrier.rule, "`careen why` shows what the node waits for.")
