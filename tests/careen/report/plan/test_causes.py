"""Tests the words for what changes buy and for merged hindrances."""

from __future__ import annotations

from careen.plan.unblocking import Bought, ChangeKind, PlanChange
from careen.report.plan.causes import bought, merged_hindrances
from scheduler_core.simulation.timeline import Hindrance


def test_each_set_of_changes_says_what_it_buys_on_top_of_those_before_it() -> None:
    uncordon = PlanChange(kind=ChangeKind.UNCORDON, subject="n9")
    sets = [Bought(changes=(uncordon,), nodes=1, seconds=60), Bought(changes=(uncordon,), nodes=2, seconds=0)]
    assert bought(sets) == [
        "uncordon n9: 1 more node reboots; the roll-out ends 1m earlier",
        "then uncordon n9: 2 more nodes reboot",
    ]


def test_hindrances_are_merged_over_time() -> None:
    found = [Hindrance(rule="forecast", subject="x", seconds=60, nodes=(name,)) for name in ("n1", "n2")]
    assert merged_hindrances(found) == [Hindrance(rule="forecast", subject="x", seconds=120, nodes=("n1", "n2"))]
