"""Tests `make bench-accuracy-cycles`, which compares recorded scheduling cycles with computed ones. The bench fits the
parameters of its model to one half of the clusters, and tests the model on both halves.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from bench.accuracy.cycles import ObservedCycle, fit, halves_of, likelihood, moved, observed, report, table
from bench.accuracy.records import write
from tests.bench.test_sampled_bench import a_record

LINE = (
    'I1122 23:59:{:02}.5 1 x.go:1] "Successfully bound pod to node" pod="{}" node="{}" evaluatedNodes={} feasible=2\n'
)


def drawn(count: int, ahead: float, nodes: int, seed: int = 1) -> list[ObservedCycle]:
    """Return `count` random scheduling cycles. The function `moved` of the bench gives the probability that the search
    after a cycle begins at another node than computed. `ahead` and `nodes` are the parameters of `moved`."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        refused = chance.uniform(0.0, 0.4)
        deviates = chance.random() < moved(refused, ahead, nodes)
        found.append(ObservedCycle(refused, int(deviates), is_node_right=True, is_best=True))
    return found


def test_dividing_the_drains_into_halves_keeps_the_drains_of_a_cluster_together() -> None:
    drains = [Path(f"records/varied-{cluster}/{number}.json.gz") for cluster in "abcde" for number in range(3)]
    fitted, judged = halves_of(drains)
    assert {path.parent.name[-1] for path in fitted} == set("ace")
    assert {path.parent.name[-1] for path in judged} == set("bd")
    assert sorted((*fitted, *judged)) == drains


@pytest.mark.parametrize(("processed", "off"), [(2, 0), (1, -1)])
def test_a_recorded_cycle_is_compared_with_the_computed_cycle(tmp_path: Path, processed: int, off: int) -> None:
    record = a_record("n1")
    log = LINE.format(1, "varied/web-2", "n1", processed)
    write(tmp_path / "0.json.gz", msgspec.structs.replace(record, log=log))
    (cycle,) = observed(tmp_path / "0.json.gz")
    assert cycle == ObservedCycle(None, off, is_node_right=True, is_best=True)


def test_the_bench_leaves_out_a_pod_that_is_missing_from_the_schedulers_log(tmp_path: Path) -> None:
    write(tmp_path / "0.json.gz", a_record("n1"))
    assert observed(tmp_path / "0.json.gz") == []


@pytest.mark.parametrize(("ahead", "nodes"), [(0.3, 6), (0.6, 12)])
def test_the_fit_finds_the_parameters_of_the_generated_cycles(ahead: float, nodes: int) -> None:
    found_ahead, found_nodes = fit(drawn(6000, ahead, nodes))
    assert found_ahead == pytest.approx(ahead, abs=0.05)
    assert nodes - 4 <= found_nodes <= nodes + 4


def test_cycles_drawn_from_the_model_fit_the_model_better_than_a_constant_probability() -> None:
    cycles = drawn(3000, 0.5, 8)
    constant = sum(not each.is_start_right for each in cycles) / len(cycles)
    assert likelihood(cycles, 0.5, 8) > likelihood(cycles, constant, None)


def test_the_table_groups_cycles_by_their_share_of_refused_nodes() -> None:
    cycles = [ObservedCycle(None, 0, is_node_right=False, is_best=True), *drawn(200, 0.4, 8)]
    lines = list(table(cycles))
    assert lines[2].split(" | ")[1:4] == ["1", "1 of 1 (100.0 %)", "100.0 %"]
    assert lines[2].split(" | ")[4:] == ["0", "0 of 1 (0.0 %)", "1 of 1 (100.0 %)", "0 of 1 (0.0 %) |"]
    assert sum(int(line.split(" | ")[1]) for line in lines[2:-1]) == 201
    assert list(table([]))[-1].startswith("| all | 0 | - ")


def test_the_report_has_a_section_for_each_half_of_the_clusters() -> None:
    lines = list(report(drawn(300, 0.4, 8), drawn(300, 0.4, 8, seed=2)))
    assert [line for line in lines if line.startswith("## ")] == [
        "## The clusters that the fit used",
        "## The clusters that the fit did not use",
    ]
    assert [line.split(" | ")[0] for line in lines if line.startswith("| clusters")] == [
        "| clusters that the fit used",
        "| clusters that the fit did not use",
    ]
