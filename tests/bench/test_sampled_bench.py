"""Tests that `make bench-accuracy-sampled` keeps all its records, and that its table has correct totals."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bench.accuracy.drained import KINDS, drain_cluster, next_start
from bench.accuracy.records import DrainRecord, paths, read, write
from bench.accuracy.sampled import HEADER, Pair, interval, judged, section, total
from tests.cluster.harness.measures.accuracy import Miss, Score
from tests.cluster.harness.measures.drains import PodEvent
from tests.cluster.harness.measures.varied import HOSTNAME, varied_cluster
from tests.scheduler_core.simulation.test_drain import a_node, a_pod


def an_event(kind: str, version: int, uid: str, node: str) -> PodEvent:
    owner = "ReplicaSet varied/web"
    return PodEvent(version=version, at=0.0, kind=kind, uid=uid, title=f"varied/{uid}", owner=owner, node=node)


def a_record(went_to: str) -> DrainRecord:
    """Return the record of a drain that evicts the pod web-1. Its replacement web-2 lands on the node `went_to`."""
    pod = a_pod("web-1", "n0", app="web")
    pod["metadata"] |= {"namespace": "varied"}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    ]
    lists = {"Node": [a_node("n0"), a_node("n1")], "Pod": [pod]}
    pages = [
        json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items})
        for kind, items in lists.items()
    ]
    events = [
        an_event("evicted", 1, "web-1", "n0"),
        an_event("created", 2, "web-2", ""),
        an_event("bound", 3, "web-2", went_to),
    ]
    return DrainRecord(
        kind="varied",
        seed=7,
        size=2,
        node="n0",
        start=1,
        pages=pages,
        lacking={},
        events=events,
        seconds=1.0,
        log="a line",
    )


def test_the_record_of_a_drain_can_be_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "varied-2-000007" / "0.json.gz"
    write(path, a_record("n1"))
    assert read(path) == a_record("n1")
    assert list(paths(tmp_path)) == [path]


def test_the_records_of_a_cluster_come_in_the_order_of_its_drains(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        write(tmp_path / "varied-2-000007" / f"{number}.json.gz", a_record("n1"))
    assert [path.name for path in paths(tmp_path)] == ["2.json.gz", "9.json.gz", "10.json.gz"]


@pytest.mark.parametrize(("went_to", "inside"), [("n1", 1), ("n9", 0)])
def test_the_record_of_a_drain_is_scored_without_a_control_plane(tmp_path: Path, went_to: str, inside: int) -> None:
    write(tmp_path / "varied-2-000007" / "0.json.gz", a_record(went_to))
    (pair,) = judged(tmp_path, ["varied"], anew=False)
    assert (pair.said.pods, pair.said.inside, pair.told_start.inside) == (1, inside, inside)
    assert judged(tmp_path, ["large"], anew=False) == []


def test_a_stored_score_is_used_again_until_a_new_score_is_requested(tmp_path: Path) -> None:
    path = tmp_path / "varied-2-000007" / "0.json.gz"
    write(path, a_record("n1"))
    judged(tmp_path, ["varied"], anew=False)
    write(path, a_record("n9"))
    assert [judged(tmp_path, ["varied"], anew=anew)[0].said.inside for anew in (False, True)] == [1, 0]


def test_a_cluster_with_stored_records_is_not_drained_again(tmp_path: Path) -> None:
    """The programs of the control plane are missing here, so a real drain would fail."""
    for number in range(2):
        write(tmp_path / "varied-2-000007" / f"{number}.json.gz", a_record("n1"))
    drain_cluster(tmp_path, "varied", 7, 2, 2)


def test_the_bench_computes_from_the_schedulers_log_where_the_next_search_starts() -> None:
    line = b'I1122 ] "Successfully bound pod to node" pod="v/a" node="n1" evaluatedNodes=%d feasibleNodes=100\n'
    assert next_start(line % 104 + b"something else evaluatedNodes=7\n" + line % 101, 200) == 5


def test_the_bootstrap_resamples_drains_instead_of_pods() -> None:
    """The forecasts are right for 50 of 100 pods in both lists. In `together`, a drain has ten pods, and its forecast
    is right for all ten pods or for none. Such pods depend on each other, so they prove less than 100 independent pods:
    the confidence interval is wider."""
    apart = [Score(pods=1, inside=number % 2) for number in range(100)]
    together = [Score(pods=10, inside=10 * (number % 2)) for number in range(10)]
    (low, high), (lower, higher) = (interval(each, random.Random(1)) for each in (apart, together))
    assert lower < low < 50 < high < higher


def test_a_section_of_the_page_shows_each_cluster_and_each_wrong_forecast() -> None:
    miss = Miss(node="v1", owner="ReplicaSet v/web", said=(("v2",),), went=("v5",), reason="not explained")
    one = Pair("varied", "7: 200 nodes", Score(pods=4, inside=4, firsts=2, sizes=12), Score(pods=4, inside=4, sizes=8))
    two = Pair(
        "varied", "8: 300 nodes", Score(pods=4, inside=3, firsts=1, sizes=12, misses=[miss]), Score(pods=4, sizes=8)
    )
    lines = list(section([one, one, two]))
    assert lines[1].count("|") == len(HEADER) + 1
    assert lines[2] == "| 7: 200 nodes | 2 | 8 | 8 of 8 (100.0 %) | 4 of 8 (50.0 %) | 3.00 | 8 of 8 (100.0 %) | 2.00 |"
    assert lines[4].startswith("| all | 3 | 12 | 11 of 12 (91.7 %) |")
    assert "A forecast lists 1.50 times as many nodes as with a known start." in lines
    assert lines[-1] == "* 8 v1, ReplicaSet v/web: the forecast named v2, but the pods got v5: not explained"
    assert total([one.said, two.said]).pods == 8


def test_the_nodes_of_a_uniform_cluster_differ_only_in_name_and_zone() -> None:
    nodes = varied_cluster(3, 30, **KINDS["identical"].shape).nodes
    kinds = {
        json.dumps({k: v for k, v in each["metadata"]["labels"].items() if k != HOSTNAME and "zone" not in k})
        for each in nodes
    }
    assert (len(nodes), len(kinds), {each["metadata"]["name"] for each in nodes}) == (
        30,
        1,
        {f"v{n:02}" for n in range(30)},
    )
    assert len({json.dumps(each["status"]["allocatable"]) for each in nodes}) == 1
