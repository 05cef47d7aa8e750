"""--slow-pod-selector in a simulation: the budgets of the selected pods may open."""

from __future__ import annotations

from careen.core.drain.listed_budgets import with_listed
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.selectors import Selector
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.labels import equality_selector
from scheduler_core.testing.builders import a_pod


def test_only_budgets_of_selected_pods_of_their_namespace_may_open() -> None:
    budgets = [
        DisruptionBudget(name=name, namespace=namespace, selector=equality_selector({"app": name}))
        for namespace, name in (("default", "vm"), ("default", "web"), ("other", "vm"))
    ]
    pods = [a_pod("vm").labelled(app="vm").build(), a_pod("web").labelled(app="web").build()]
    policy = DrainPolicy(slow_selectors=(Selector.parse("app=vm"),))
    assert [bool(each.may_open) for each in with_listed(budgets, pods, policy)] == [True, False, False]
