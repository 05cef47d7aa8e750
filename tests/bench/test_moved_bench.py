"""Tests the output of `make bench-moved`. A table has one column for each measured agent, for example careen and kured.
Two agents are compared by their runs with the same seeds. The output also says how probable the measured difference
would be if both agents were equally good. With few runs, this probability must not be small, because a few runs cannot
prove a difference."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.rollout import moved
from bench.rollout.comparison import Run, chance_of, differences, plot, tables

AGENTS = {"with": "with taint", "without": "no taint", "absent": "an agent without runs"}
SVG = "{http://www.w3.org/2000/svg}"


def a_run(
    agent: str, seed: int, repeat: int, lead: tuple[float, float, float] | None = (1.0, 70.0, 150.0), asking: int = 12
) -> Run:
    return Run(
        agent=agent,
        seed=seed,
        asking=asking,
        finished=True,
        pods=99,
        moves=100 + repeat,
        floor=106 if asking == 12 else None,
        repeat=repeat,
        pending=330.0,
        unscheduled=1.5,
        tainted=12 if lead else 0,
        lead=lead,
        wall=180.0,
        requests=1400,
        most_down=1,
    )


RUNS = [a_run("with", seed, 10 + seed) for seed in (1, 2, 3)] + [
    a_run("without", seed, 20 - seed, lead=None) for seed in (3, 2, 1)
]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_moves_has_a_column_for_each_agent_that_ran() -> None:
    head, _, *rows = [cells(line) for line in tables(RUNS, AGENTS, 12).splitlines() if line.startswith("|")]
    assert head == ["least / median / greatest", "with taint", "no taint"]
    assert ["repeat moves (a pod moves again)", "11 / 12 / 13", "17 / 18 / 19"] in rows
    assert ["lead time (taint to cordon), s: median of the nodes", "70 / 70 / 70", "–"] in rows


def test_the_table_of_moves_has_a_row_for_each_seed() -> None:
    assert [
        cells(line) for line in tables(RUNS, AGENTS, 12).splitlines() if line.startswith(("| 1", "| 2", "| 3"))
    ] == [
        ["1", "11", "19"],
        ["2", "12", "18"],
        ["3", "13", "17"],
    ]


def test_roll_outs_of_some_and_of_all_nodes_have_separate_tables() -> None:
    some = [a_run("with", 1, 0, asking=8), a_run("without", 1, 9, asking=8)]
    all_of_them, part = tables([*some, *RUNS], AGENTS, 12).split("### 8 of the 12 nodes reboot")
    assert all_of_them.startswith("### All 12 nodes reboot")
    assert ["1", "0", "9"] in [cells(line) for line in part.splitlines()]
    additional = "additional pod moves, compared with the least possible number"
    assert (additional in all_of_them, additional in part) == (True, False)


def test_two_agents_are_compared_only_for_seeds_that_both_have_run() -> None:
    assert differences([*RUNS, a_run("with", 4, 9)], "with", "without") == [-8, -6, -4]
    assert tables(RUNS, AGENTS, 12).endswith(
        '* Repeat moves of "with taint" minus repeat moves of "no taint", for each seed: -8, -6, -4; on average -6.0. '
        "If the two agents were equally good, chance alone would give such an average in 25% of cases."
    )


@pytest.mark.parametrize(
    ("pairs", "chance"),
    [([-3, -3, -3, -3, -3], 2 / 32), ([0, 0], 1.0), ([5], 1.0), ([-1, 1], 1.0), ([4, 3, 2, 1, -1], 6 / 32)],
)
def test_the_p_value_counts_all_ways_to_swap_the_two_runs_within_each_pair(pairs: list[int], chance: float) -> None:
    assert chance_of(pairs) == chance


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=7))
def test_the_p_value_is_two_sided_and_never_significant_for_few_pairs(pairs: list[int]) -> None:
    assert 2 / 2 ** len(pairs) <= chance_of(pairs) <= 1
    assert chance_of(pairs) == chance_of([-pair for pair in pairs])


# -- the plot


def panel(title: str) -> ET.Element:
    return next(
        group
        for group in ET.fromstring(plot(RUNS, AGENTS))
        if group.tag == f"{SVG}g" and group.findtext(f"{SVG}text") == title
    )


def test_the_plot_has_a_point_for_each_run_and_lower_points_mean_fewer_moves() -> None:
    heights = [float(point.get("cy", "")) for point in panel("repeat moves (12 nodes reboot)").iter(f"{SVG}circle")]
    assert len(heights) == len(RUNS)
    of_seed_1 = heights[:2]
    assert of_seed_1[0] > of_seed_1[1]  # 11 against 19: an SVG counts from the top


def test_a_missing_result_is_labelled_in_the_plot_and_not_drawn_as_zero() -> None:
    drawn = panel("lead time in seconds (12 nodes reboot)")
    assert len(list(drawn.iter(f"{SVG}circle"))) == 3
    assert [text.text for text in drawn.iter(f"{SVG}text")].count("none") == 1


def test_the_axes_of_the_plot_begin_at_zero_and_extend_above_each_point() -> None:
    for title in ("pods moved", "repeat moves", "pending time in seconds"):
        drawn = panel(f"{title} (12 nodes reboot)")
        ticks = [float(text.text or "") for text in drawn.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
        assert ticks[0] == 0
        assert all(low < high for low, high in pairwise(ticks))
        lines = [float(line.get("y1", "")) for line in drawn.iter(f"{SVG}line") if line.get("stroke") == "#ddd"]
        assert min(lines) <= min(float(point.get("cy", "")) for point in drawn.iter(f"{SVG}circle"))


# -- kept results


def test_a_new_result_replaces_the_stored_result_of_the_same_agent_and_seed(tmp_path: Path) -> None:
    kept = moved._Kept(tmp_path / "moved.json")
    part = a_run("careen", 2, 1, asking=8)
    for run in (part, a_run("kured", 1, 15), a_run("careen", 2, 12), a_run("careen", 2, 9)):
        kept.add(run)
    assert moved.read(tmp_path / "moved.json") == [a_run("careen", 2, 9), a_run("kured", 1, 15), part]


def test_a_result_of_the_roll_out_bench_becomes_a_row() -> None:
    result = {
        "finished": True,
        "rollout": {
            "wall": 180.04,
            "most_down": 1,
            "tainted": 12,
            "lead": {"least": 0.81, "median": 72.8, "greatest": 159.5, "count": 12},
            "moves": {"total": 111, "repeat": 12, "floor": 105, "pending_seconds": 337.02, "unscheduled_seconds": 1.9},
        },
        "requests": {"total": 1476, "by_verb": {}, "too_many": 20},
    }
    run = moved.run_of("careen", 0, 12, result)
    assert (run.moves, run.repeat, run.lead, run.requests, run.pods) == (111, 12, (0.8, 72.8, 159.5), 1476, 99)
    assert moved.run_of(
        "careen", 0, 12, {**result, "rollout": {**json.loads(json.dumps(result["rollout"])), "lead": None}}
    ) == replace(run, lead=None)


def test_the_published_table_and_plot_match_the_stored_results() -> None:
    runs = moved.read(moved.RESULTS)
    page = moved.PAGE.read_text()
    assert page == moved.with_tables(page, runs)
    assert moved.PLOT.read_text() == plot(runs, moved.HEADINGS)


def test_each_published_roll_out_finished_and_never_had_two_nodes_down_at_once() -> None:
    runs = moved.read(moved.RESULTS)
    assert runs
    assert [(run.agent, run.seed) for run in runs if not run.finished or run.most_down > 1] == []
