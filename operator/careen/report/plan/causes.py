"""What keeps nodes from rebooting in a plan, in words, and what changes buy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta

from careen.core.facts.times import duration
from careen.plan.unblocking import Bought, ChangeKind, barriers
from careen.report.tables import listed
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Hindrance, Timeline


def unfinished(timeline: Timeline, ends: str) -> str:
    """How many nodes reboot by when, and what the others need: `128 of 200 nodes reboot by Fri 2026-11-27 01:33 UTC;
    72 need a change of 15 budgets; shop/app-120 holds 20 of them.`"""
    rebooted, total = len(timeline.reboots), len(timeline.nodes)
    parts = [f"{rebooted} of {count_of(total, 'node')} reboot by {ends}"]
    found = barriers(timeline)
    holds: Counter[str] = Counter()
    names: dict[ChangeKind, set[str]] = defaultdict(set)
    nodes: Counter[ChangeKind] = Counter()
    for each in found:
        for kind in {change.kind for change in each.changes}:
            nodes[kind] += len(each.nodes)
        for change in each.changes:
            names[change.kind].add(change.subject)
            holds[change.subject] += len(each.nodes)
    if budgets := names[ChangeKind.BUDGET]:
        most = max(sorted(budgets), key=lambda name: holds[name])
        parts.append(f"{nodes[ChangeKind.BUDGET]} need a change of {count_of(len(budgets), 'budget')}")
        parts.append(f"{most} holds {holds[most]} of them")
    if cordons := names[ChangeKind.UNCORDON]:
        parts.append(f"{nodes[ChangeKind.UNCORDON]} wait for {listed(sorted(cordons))} to be uncordoned")
    others = [each for each in found if not {ChangeKind.BUDGET, ChangeKind.UNCORDON} & {c.kind for c in each.changes}]
    if others:
        more = f", and {count_of(len(others) - 1, 'other cause')}" if len(others) > 1 else ""
        parts.append(f"{sum(len(each.nodes) for each in others)} wait: {others[0].subject}{more}")
    return f"{'; '.join(parts)}."


def bought(unblocks: Sequence[Bought]) -> list[str]:
    """What each set of changes buys on top of those before it."""
    sentences = []
    for place, each in enumerate(unblocks):
        what = " and ".join(change.sentence for change in each.changes)
        later = "earlier" if each.seconds > 0 else "later"
        end = f"; the roll-out ends {duration(timedelta(seconds=abs(each.seconds)))} {later}" if each.seconds else ""
        verb = "reboots" if each.nodes == 1 else "reboot"
        buys = f"{count_of(each.nodes, 'more node')} {verb}{end}" if each.nodes else end.removeprefix("; ")
        sentences.append(f"{'then ' if place else ''}{what}: {buys}")
    return sentences


def merged_hindrances(found: Sequence[Hindrance]) -> list[Hindrance]:
    """One for each rule and subject over the whole time: a rule that names the nodes that are down just then has many
    subjects, which count as one."""
    groups: dict[tuple[str, str], list[Hindrance]] = defaultdict(list)
    for each in found:
        groups[each.rule, each.subject if each.rule != "budgets" or " is " not in each.subject else ""].append(each)
    merged = [
        Hindrance(
            rule=members[0].rule,
            subject=members[0].subject,
            seconds=sum(each.seconds for each in members),
            nodes=tuple(dict.fromkeys(name for each in members for name in each.nodes)),
        )
        for members in groups.values()
    ]
    return sorted(merged, key=lambda each: -each.seconds)
