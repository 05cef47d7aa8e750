"""The checker of a roll-out: it judges a journal (`journal.py`) by rules, and asks no agent what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drydock.checker import rules_of_the_effort as effort
from drydock.checker import rules_of_the_host as host
from drydock.checker import rules_of_the_lock as lock
from drydock.checker import rules_of_the_node as node
from drydock.checker import rules_of_the_service as service
from drydock.checker import rules_of_the_workloads as workloads
from drydock.checker.journal import Journal
from drydock.checker.rule import Breach, Rule

RULES: tuple[Rule, ...] = (
    # First the rules that protect workloads, then those that prevent a stuck fleet and leftovers.
    node.nodes_down,
    node.budgets,
    node.one_zone,
    node.out_of_service,
    lock.claim,
    lock.reboot,
    node.cordoned,
    node.drained,
    node.eviction,
    node.hold,
    lock.pause,
    lock.halt,
    lock.release,
    lock.early,
    workloads.settled,
    service.service,
    effort.effort,
    lock.claims,
    lock.double,
    lock.theft,
    node.own_node,
    node.foreign,
    host.loop,
    host.asked,
    host.once,
    host.taint,
    node.explained,
    host.reported,
    host.finished,
    host.broken_turns,
    host.exits,
    node.tidy,
    node.end,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """A rule with its violations, the earliest first."""

    rule: Rule
    breaches: tuple[Breach, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`unjudged` says for each rule that was not judged what the journal's world cannot tell. Unknown is not OK."""

    broken: tuple[BrokenRule, ...]
    unjudged: Mapping[str, str]


def judge(journal: Journal) -> Judgement:
    broken, unjudged = [], {}
    for rule in RULES:
        if lacking := rule.lacks(journal):
            unjudged[rule.name] = f"not judged: this world cannot tell {' and '.join(lacking)}"
        elif breaches := rule.breaches(journal):
            broken.append(BrokenRule(rule=rule, breaches=breaches))
    return Judgement(broken=tuple(broken), unjudged=unjudged)
