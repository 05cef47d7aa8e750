"""Tests `make bench-accuracy`: its clusters are varied and reproducible, and its table has correct totals."""

from __future__ import annotations

from bench.accuracy.__main__ import HEADER, misses, table
from tests.cluster.harness.measures.accuracy import Miss, Score
from tests.cluster.harness.measures.varied import varied_cluster


def test_the_seed_determines_the_cluster_of_the_bench() -> None:
    assert varied_cluster(7) == varied_cluster(7)
    assert varied_cluster(7).workloads != varied_cluster(8).workloads


def test_the_first_ten_generated_clusters_contain_every_placement_rule() -> None:
    text = repr([varied_cluster(seed) for seed in range(10)])
    wanted = [
        "'StatefulSet'",
        "'Job'",
        "'PodDisruptionBudget'",
        "'DoNotSchedule'",
        "'ScheduleAnyway'",
        "'nodeSelector'",
        "'PreferNoSchedule'",
        "'NoSchedule'",
        "'nodeAffinity'",
        "'podAffinity'",
        "'podAntiAffinity'",
        "'priorityClassName'",
        "'hostPort'",
        "'tolerations'",
        "'emptyDir'",
        "'OrderedReady'",
    ]
    assert [word for word in wanted if word not in text] == []


def test_the_table_has_a_row_per_cluster_and_a_total() -> None:
    one = Score(
        drains=1,
        drains_in_order=1,
        pods=4,
        inside=4,
        single=3,
        single_equal=3,
        single_in_order=3,
        single_equal_in_order=3,
        sizes=5,
    )
    two = Score(
        drains=1, pods=4, inside=3, single=4, single_equal=3, sizes=5, superseded=1, pending_said=1, pending_seen=1
    )
    rows = list(table([("21: 8 nodes", one), ("22: 9 nodes", two)]))
    assert rows[0].count("|") == len(HEADER) + 1
    assert (
        rows[2]
        == "| 21: 8 nodes | 1 | 1 | 4 | 4 of 4 (100.0 %) | 3 | 3 of 3 (100.0 %) | 3 of 3 (100.0 %) | 1.25 | 0 | 0, 0 |"
    )
    assert (
        rows[-1] == "| all | 2 | 1 | 8 | 7 of 8 (87.5 %) | 7 | 6 of 7 (85.7 %) | 3 of 3 (100.0 %) | 1.11 | 1 | 1, 1 |"
    )


def test_each_pod_that_landed_outside_its_forecast_is_reported_with_a_reason() -> None:
    score = Score(
        misses=[
            Miss(
                node="v1",
                owner="ReplicaSet v/web",
                said=(("v2",), ("v3", "v4")),
                went=("v2", "v5"),
                reason="not explained",
            )
        ]
    )
    assert (
        list(misses([("21: 8 nodes", score)]))[-1]
        == "* 21 v1, ReplicaSet v/web: the forecast named v2 + v3|v4, but the pods got v2 + v5: not explained"
    )
