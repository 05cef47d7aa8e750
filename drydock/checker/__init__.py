"""The checker of a roll-out: a table of the rules. Each rule has a name for `careen demo --break`, a sentence and a
check.

No rule asks the agents what they did; `evidence.py` describes what the rules read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drydock.checker import rules_of_the_host, rules_of_the_lock, rules_of_the_node, rules_of_the_workloads
from drydock.checker.evidence import Breach, RolloutTrace


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a roll-out must obey, at every moment or at the end."""

    name: str
    sentence: str
    breaches: Callable[[RolloutTrace], Iterator[Breach]]


RULES: tuple[Rule, ...] = (
    # First the rules that protect workloads, then those that prevent a stuck fleet and leftovers.
    Rule(
        "nodes-down",
        "at most the allowed number of nodes is down at once",
        rules_of_the_node.never_more_nodes_down_than_allowed,
    ),
    Rule("claim", "no node reboots unless it holds the lock", rules_of_the_lock.no_reboot_without_its_own_claim),
    Rule("drained", "no node reboots before it is drained", rules_of_the_node.no_reboot_of_a_node_that_is_not_drained),
    Rule(
        "eviction",
        "agents evict pods and never delete them, because only an eviction obeys disruption budgets",
        rules_of_the_node.pods_leave_by_eviction,
    ),
    Rule(
        "hold",
        "agents neither cordon nor reboot a node that a person has put on hold",
        rules_of_the_node.held_nodes_are_left_alone,
    ),
    Rule(
        "release",
        "an agent releases the lock only after its node has rebooted, or after the agent has removed its own cordon",
        rules_of_the_lock.claims_are_released_only_when_it_is_safe,
    ),
    Rule(
        "settled",
        "the workloads that a drain displaced are healthy again before the drained node releases the lock",
        rules_of_the_workloads.workloads_are_healthy_before_the_claim_is_released,
    ),
    Rule(
        "claims",
        "at most the allowed number of nodes holds the lock at once",
        rules_of_the_lock.never_more_claims_than_allowed,
    ),
    Rule(
        "theft",
        "no agent removes another node from the lock while that node still holds the lock",
        rules_of_the_lock.no_claim_is_stolen,
    ),
    Rule(
        "own-node",
        "an agent writes only its own Node and the pods on this node",
        rules_of_the_node.agents_write_their_own_node_only,
    ),
    Rule(
        "foreign",
        "agents keep cordons, taints, labels and annotations that other clients have set",
        rules_of_the_node.what_others_set_stays,
    ),
    Rule(
        "loop", "no node reboots again unless its host needs another reboot", rules_of_the_host.one_reboot_for_each_need
    ),
    Rule(
        "taint",
        "every node is tainted soon after its host needs a reboot",
        rules_of_the_host.every_need_is_tainted_in_time,
    ),
    Rule("explained", "every waiting node shows the reason why it waits", rules_of_the_node.waiting_nodes_say_why),
    Rule(
        "finished",
        "every node that needs a reboot reboots and returns to service",
        rules_of_the_host.every_node_returns_to_service,
    ),
    Rule(
        "tidy",
        "no taint, label, cordon or claim of careen is left at the end",
        rules_of_the_node.nothing_of_ours_is_left,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """A rule with its violations, the earliest first."""

    rule: Rule
    breaches: tuple[Breach, ...]


def judge(evidence: RolloutTrace) -> list[BrokenRule]:
    """Returns the broken rules in the order of `RULES`, or an empty list if no rule was broken."""
    found = [
        BrokenRule(rule=rule, breaches=tuple(sorted(rule.breaches(evidence), key=lambda b: b.at))) for rule in RULES
    ]
    return [broken for broken in found if broken.breaches]
