from __future__ import annotations

from typing import Any

import pytest

from careen.report.plan.sentences import summary
from scheduler_core.simulation.timeline import Closing
from tests.careen.report.planned import a_plan, at, some_ranges


def test_the_report_of_a_plan_summarises_many_windows() -> None:
    closings = tuple(Closing(at=at(86_400 * day), left=9 - day) for day in range(5))
    found = summary(a_plan(closings=closings))
    assert sum(each.startswith("The window ends at ") for each in found) == 3
    assert (
        "5 windows end before all nodes have rebooted; the last of these windows ends at Sun 2026-03-08 22:00 UTC with "
        "5 nodes still to reboot." in found
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            (
                "With 5 different seeds, the plan has 38-44 moves and 2 double moves, and ends "
                "Wed 2026-03-04 22:09:05-22:16:05 UTC."
            ),
        ),
        (
            {"moves": (38, 38), "ends": (at(600), at(600))},
            "With 5 different seeds, the plan has 38 moves and 2 double moves, and ends Wed 2026-03-04 22:10 UTC.",
        ),
        (
            {"ends": (at(600), at(7200 + 60))},
            (
                "With 5 different seeds, the plan has 38-44 moves and 2 double moves, and ends "
                "between Wed 2026-03-04 22:10 and Thu 2026-03-05 00:01 UTC."
            ),
        ),
        (
            {"pending_seconds": (0.0, 90.0)},
            (
                "With 5 different seeds, the plan has 38-44 moves and 2 double moves, and ends "
                "Wed 2026-03-04 22:09:05-22:16:05 UTC; in total, pods without room wait 0s to 1m30s."
            ),
        ),
        ({"seeds": 1}, "Another seed may give another plan: --seeds=5 shows the differences."),
    ],
)
def test_one_sentence_says_how_the_plans_of_several_seeds_differ(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in summary(a_plan(ranges=some_ranges(**changes), is_open=True))


def test_a_plan_without_random_choices_says_that_every_seed_gives_the_same_plan() -> None:
    told = "No step of the plan depends on chance: every seed gives the same plan."
    assert told in summary(a_plan(ranges=some_ranges(seeds=1)))
