"""The groups of nodes that budgets limit."""

from __future__ import annotations

from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Budget, BudgetKind, Policy

CONTROL_PLANE = Budget(kind=BudgetKind.CONTROL_PLANE, limit=1)
"""The budget that always applies: control-plane nodes go down one at a time."""


def budgets(policy: Policy) -> tuple[Budget, ...]:
    """The configured budgets, and the one that always applies."""
    return (*policy.budgets, CONTROL_PLANE)


def groups(node: NodeView, policy: Policy) -> dict[str, int]:
    """The Node's groups, each with the smallest limit that a budget sets for it."""
    found: dict[str, int] = {}
    for budget in budgets(policy):
        if group := budget.group_of(node.labels):
            found[group] = min(budget.limit, found.get(group, budget.limit))
    return found
