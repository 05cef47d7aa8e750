"""Tests the initial clusters of the demo."""

from __future__ import annotations

import pytest

from drydock.rollout.sample_cluster import sample_objects


@pytest.mark.parametrize(("nodes", "budgets"), [(1, 0), (2, 4), (12, 4)])
def test_a_sample_cluster_of_one_node_has_no_disruption_budget_that_blocks_the_drain(nodes: int, budgets: int) -> None:
    assert sum(each["kind"] == "PodDisruptionBudget" for each in sample_objects(nodes)) == budgets
