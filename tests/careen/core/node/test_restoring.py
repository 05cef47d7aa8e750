"""Tests what a Node gets back that careen took out of service (`careen.core.node.restoring`)."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.phases import Phase
from careen.core.node.autoscalers import protected, taken_back
from careen.core.node.restoring import NodeChange, as_before
from tests.careen.core.builders import a_marked_node, a_node, a_policy, a_progress

POLICY = a_policy(pre_reboot_labels={"pool": "maintenance"})
DRAINING = a_progress(Phase.DRAINING, prior_labels={"pool": "web", "old": None})


@pytest.mark.parametrize(
    ("is_ours", "is_cordoned", "expected"), [(True, True, False), (True, False, None), (False, True, None)]
)
def test_only_a_cordon_of_careen_is_lifted(is_ours: bool, is_cordoned: bool, expected: bool | None) -> None:
    progress = a_progress(Phase.DRAINING, is_cordoned_by_us=is_ours)
    assert as_before(a_node(unschedulable=is_cordoned), progress, POLICY).unschedulable is expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [({"pool": "maintenance"}, {"pool": "web", "old": None}), ({"pool": "other"}, {"old": None}), ({}, {"old": None})],
)
def test_a_label_gets_its_earlier_value_unless_another_client_changed_it(now: Any, expected: Any) -> None:
    assert as_before(a_node(labels=now), DRAINING, POLICY).labels == expected


def test_further_changes_win_over_restored_values_except_the_cordon() -> None:
    annotations = {key: value for key, value in protected(a_node()).items() if value is not None}
    node = a_marked_node(DRAINING, labels={"pool": "maintenance"}, annotations=annotations)
    change = as_before(
        node, DRAINING, POLICY, NodeChange(labels={"pool": "new"}, annotations={"x": "y"}, unschedulable=True)
    )
    assert change.labels == {"pool": "new", "old": None}
    assert change.annotations == {**taken_back(annotations), "x": "y"}
    assert change.unschedulable is False
