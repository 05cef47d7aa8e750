"""Tests `make bench-accuracy-learned`, which learns from recorded watch events. The bench does not score the
forecasts of the first drains, because few bindings precede these drains.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from bench.accuracy import learned
from bench.accuracy.bindings import bindings, others
from bench.accuracy.learned import HEADER, LearnedPair, judged, section
from bench.accuracy.records import DrainRecord, write
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.snapshot.loading import load_pages
from tests.bench.test_sampled_bench import a_record
from tests.cluster.harness.measures.accuracy import Score


def test_each_recorded_binding_comes_with_the_state_of_the_cluster_before_the_binding() -> None:
    record = a_record("n1")
    (seen,) = bindings(record, load_pages(record.happened.pages))
    assert seen.pod is not None
    assert (seen.pod.key, seen.node, seen.pod.node_name) == ("varied/web-2", "n1", "")
    assert seen.before.node("n0").unschedulable
    assert [pod.terminating for pod in seen.before.pods_on("n0")] == [True]
    assert seen.before.pods_on("n1") == ()


def logged(record: DrainRecord, *titles: str) -> DrainRecord:
    """Return the record with a scheduler log that binds these pods, one in each second."""
    line = 'I1122 23:59:{:02}.500000 1 x.go:1] "Successfully bound pod to node" pod="{}" node="n0" evaluatedNodes=2\n'
    log = "".join(line.format(second + 58, title) for second, title in enumerate(titles))
    return msgspec.structs.replace(record, log=log)


def test_a_pod_still_pending_when_the_drain_ends_is_bound_to_the_uncordoned_node() -> None:
    record = logged(a_record("n1"), "varied/web-2")
    record.events.pop()
    (seen,) = bindings(record, load_pages(record.happened.pages))
    assert seen.pod is not None
    assert (seen.pod.key, seen.node) == ("varied/web-2", "n0")
    assert not seen.before.node("n0").unschedulable


def test_bindings_of_pods_without_recorded_events_keep_the_order_of_the_schedulers_log() -> None:
    record = logged(a_record("n1"), "other/first", "varied/web-2", "other/second")
    seen = [binding.pod and binding.pod.key for binding in bindings(record, load_pages(record.happened.pages))]
    assert seen == [None, "varied/web-2", None]


def test_the_bench_counts_the_bindings_in_other_namespaces() -> None:
    assert others(logged(a_record("n1"), "other/a", "varied/web-2")) == (1, pytest.approx(1.0))
    assert others(a_record("n1")) == (0, 0.0)


def test_the_bench_starts_to_learn_again_after_the_cluster_was_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted bench creates the cluster again, and the new cluster has a new scheduler."""
    first, second = a_record("n1"), a_record("n1")
    pages = [re.sub(r'"uid": ?"([^"]+)"', r'"uid":"again-\1"', page) for page in second.pages]
    paths = [tmp_path / "varied-2-000007" / f"{number}.json.gz" for number in range(3)]
    for path, record in zip(paths, (first, first, msgspec.structs.replace(second, pages=pages)), strict=True):
        write(path, record)
    monkeypatch.setattr(learned, "LEAST_BINDINGS", 1)
    begun: list[int] = []
    unknown = SearchEstimate.unknown
    monkeypatch.setattr(
        learned.SearchEstimate,
        "unknown",
        lambda *given: begun.append(len(begun)) or unknown(*given),  # type: ignore[func-returns-value]
    )
    learned.judge(paths)
    assert len(begun) == 2


@pytest.mark.parametrize(("least", "counted"), [(0, 3), (20, 0)])
def test_the_bench_scores_no_drain_until_it_has_seen_enough_bindings(
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


def test_the_table_compares_the_size_of_forecasts_with_and_without_learning() -> None:
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
    assert "95 % interval 50.0 to 50.0 %" in lines[4]
