"""`make bench-accuracy-learned` learns from a watch's events, and counts only the drains after enough bindings."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.accuracy import learned
from bench.accuracy.bindings import bindings
from bench.accuracy.learned import HEADER, LearnedPair, judged, section
from bench.accuracy.records import write
from scheduler_core.snapshot.loading import load_pages
from tests.bench.test_sampled_bench import a_record
from tests.cluster.harness.measures.accuracy import Score


def test_a_binding_is_reported_with_the_cluster_before_it() -> None:
    record = a_record("n1")
    (seen,) = bindings(record, load_pages(record.happened.pages))
    assert (seen.pod.key, seen.node, seen.pod.node_name) == ("varied/web-2", "n1", "")
    assert seen.before.node("n0").unschedulable
    assert [pod.terminating for pod in seen.before.pods_on("n0")] == [True]
    assert seen.before.pods_on("n1") == ()


def test_a_pod_without_a_node_is_bound_once_and_other_pods_are_skipped() -> None:
    record = a_record("n1")
    record.events.pop()
    line = '"Successfully bound pod to node" pod="{}" node="n0" evaluatedNodes=2 feasibleNodes=2\n'
    log = "".join(line.format(title) for title in ("varied/web-2", "varied/web-2", "other/stranger"))
    later = type(record)(**{name: getattr(record, name) for name in record.__struct_fields__} | {"log": log})
    (seen,) = bindings(later, load_pages(record.happened.pages))
    assert (seen.pod.key, seen.node) == ("varied/web-2", "n0")
    assert not seen.before.node("n0").unschedulable


@pytest.mark.parametrize(("least", "counted"), [(0, 3), (20, 0)])
def test_drains_before_enough_bindings_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, counted: int
) -> None:
    paths = [tmp_path / "varied-2-000007" / f"{number}.json.gz" for number in range(3)]
    for path in paths:
        write(path, a_record("n1"))
    monkeypatch.setattr(learned, "LEAST_BINDINGS", least)
    pairs = learned.judge(paths)
    assert len(pairs) == counted
    assert all((pair.without.inside, pair.learned.inside) == (1, 1) for pair in pairs)
    assert judged(tmp_path, "large") == []


def test_the_table_shows_the_ratio_of_the_sets_and_an_interval() -> None:
    pairs = [LearnedPair("7: 2 nodes", Score(pods=2, inside=2, sizes=8), Score(drains=1, pods=2, inside=1, sizes=3))]
    lines = list(section(pairs))
    assert lines[1:3] == ["|---" * len(HEADER) + "|", lines[2]]
    assert lines[2].split(" | ")[3:] == [
        "2 of 2 (100.0 %)",
        "4.00",
        "1 of 2 (50.0 %)",
        "0 of 2 (0.0 %)",
        "1.50",
        "0.38 |",
    ]
    assert "resampled by drain: 50.0 to 50.0 %" in lines[4]
