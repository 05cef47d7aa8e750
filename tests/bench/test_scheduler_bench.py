"""Tests that the cluster of `make bench-scheduler` is as documented, and that the plot shows every point."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from bench.scheduler import cluster
from bench.scheduler.growth import plot


def items(directory: Path, kind: str) -> list[dict[str, Any]]:
    pages = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    return [item for page in pages if page["kind"] == f"{kind}List" for item in page["items"]]


def test_every_node_has_pods_of_different_applications(tmp_path: Path) -> None:
    cluster.write(tmp_path, nodes=20, seed=1)
    where = collections.Counter(
        (pod["spec"]["nodeName"], pod["metadata"]["labels"]["app"]) for pod in items(tmp_path, "Pod")
    )
    assert len(items(tmp_path, "Node")) == 20
    assert sum(where.values()) == 20 * cluster.PODS_PER_NODE
    assert set(where.values()) == {1}


def test_a_page_of_the_generated_pod_list_contains_at_most_five_hundred_pods(tmp_path: Path) -> None:
    cluster.write(tmp_path, nodes=20, seed=1)
    sizes = [len(json.loads(path.read_text())["items"]) for path in tmp_path.glob("4-pods-*.json")]
    assert sorted(sizes) == [100, 500]


def test_the_same_seed_generates_the_same_cluster(tmp_path: Path) -> None:
    written = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        cluster.write(tmp_path / name, nodes=20, seed=seed)
        written[name] = [path.read_bytes() for path in sorted((tmp_path / name).glob("*.json"))]
    assert written["a"] == written["b"]
    assert written["a"] != written["c"]


def test_the_pending_pods_are_divided_equally_among_the_four_kinds_and_share_no_application() -> None:
    """The kinds are `spread`, `anti-affinity`, `preferred-affinity` and `plain`."""
    for nodes in (100, 5000, 10000):
        pods = cluster.pods_to_place(nodes, 40)
        assert collections.Counter(map(cluster.kind_of, pods)) == dict.fromkeys(cluster.KINDS, 10)
        assert [cluster.kind_of(pod) for pod in pods[:4]] == list(cluster.KINDS)
        assert len({pod["metadata"]["labels"]["app"] for pod in pods}) == 40


def test_the_plot_draws_one_line_for_each_series_and_one_dot_for_each_measurement() -> None:
    """The plot has two series with two measurements each. A longer time is drawn higher."""
    picture = ET.fromstring(plot("title", {"one": [(100, 0.5), (10000, 80)], "other": [(100, 0.1), (10000, 2)]}))
    tags = collections.Counter(element.tag.rpartition("}")[2] for element in picture.iter())
    assert tags["polyline"] == 2
    assert tags["circle"] == 4
    heights = [float(circle.attrib["cy"]) for circle in picture.iter() if circle.tag.endswith("circle")]
    assert heights[1] < heights[3] < heights[0] < heights[2]


def test_only_some_namespaces_contain_old_replica_sets(tmp_path: Path) -> None:
    cluster.write(tmp_path, nodes=2, seed=1, namespaces=3, old_revisions=2)
    made = items(tmp_path, "ReplicaSet")
    assert len({each["metadata"]["uid"] for each in made}) == len(made) == 3 * 200
    assert collections.Counter(each["spec"]["replicas"] for each in made) == {0: 400, cluster.REPLICAS: 200}
    assert {each["metadata"]["namespace"] for each in made} == {"team-0", "team-1", "team-2"}
