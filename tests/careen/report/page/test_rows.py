"""Tests that the page of a plan has one row for each node, in the order in which the nodes reboot."""

from __future__ import annotations

import re

from careen.report.page.axis import Axis
from careen.report.page.rows import rows
from tests.careen.report.planned import a_bad_plan, a_plan


def test_a_node_that_is_drained_twice_has_one_row() -> None:
    plan = a_bad_plan()
    names = re.findall(r'<span class="name">(.+?)</span>', rows(plan, Axis.of(plan.timeline.visits)))
    assert names == ["n1", "n2"]


def test_the_legend_lists_exactly_the_steps_that_the_page_draws() -> None:
    plan = a_plan()
    text = rows(plan, Axis.of(plan.timeline.visits))
    assert "draining: the node is cordoned, and its pods move away" in text
    assert "held back" not in text
