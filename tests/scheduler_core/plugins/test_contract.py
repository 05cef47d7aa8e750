"""Tests the contract of every in-tree plugin: equal decisions for one node and for all nodes, deterministic results, an
unchanged snapshot, a reason for every refusal, and a table test for each of these reasons."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import (
    FilterAllPlugin,
    FilterPlugin,
    NormalizePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScoreAllPlugin,
    ScorePlugin,
    TabledScorePlugin,
)
from scheduler_core.framework.plugin_set import METHOD_OF, serves
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE
from scheduler_core.plugins.default_profile import default_plugins
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods

VERSIONS = tuple(KubeVersion.parse(f"1.{minor}") for minor in range(32, 38))
NEWEST = KubeVersion.parse("1.36")
CASES = [
    json.loads(line)
    for line in gzip.decompress(
        (Path(__file__).parents[2] / "conformance" / "cases.jsonl.gz").read_bytes()
    ).splitlines()[::8]
]


def built(name: str, version: KubeVersion = NEWEST) -> Any:
    return IN_TREE[name](Configuration().profiles[0].plugin_args(name, version), version)


FILTERS = [name for name in IN_TREE if serves(built(name), "filter")]
SCORERS = [name for name in IN_TREE if serves(built(name), "score")]


def check_filter(plugin: Any, pod: Pod, snapshot: Snapshot) -> None:
    """Checks that a call for all nodes gives the same verdicts as a call for each node, and that each refusal has a
    reason."""
    nodes, state = NodeList(snapshot), CycleState()
    if isinstance(plugin, PreFilterPlugin):
        result = plugin.pre_filter(state, pod, nodes)
        if not result.verdict.is_success:
            assert result.verdict.is_skip or result.verdict.reasons
            return
    assert isinstance(plugin, FilterPlugin)
    one_by_one = [plugin.filter(state, pod, node_info) for node_info in nodes]
    assert [verdict.is_success or bool(verdict.reasons) for verdict in one_by_one] == [True] * len(nodes)
    if isinstance(plugin, FilterAllPlugin):
        refusals = plugin.filter_all(state, pod, nodes)
        if refusals is not None:
            assert [refusals.verdict(int(code)) for code in refusals.codes] == one_by_one
        backwards = NodeList(snapshot, nodes.rows[::-1].copy())
        turned = plugin.filter_all(state, pod, backwards)
        if turned is not None:
            assert [turned.verdict(int(code)) for code in turned.codes] == one_by_one[::-1]


def check_score(plugin: Any, pod: Pod, snapshot: Snapshot, rows: np.ndarray[Any, Any]) -> None:
    """Checks that a call for all nodes and a table give the same scores as a call for each node, and that normalized
    scores are between 0 and 100."""
    nodes, state = NodeList(snapshot, rows), CycleState()
    if isinstance(plugin, PreFilterPlugin):
        plugin.pre_filter(state, pod, nodes)
    if isinstance(plugin, PreScorePlugin) and not plugin.pre_score(state, pod, nodes).is_success:
        return
    assert isinstance(plugin, ScorePlugin)
    one_by_one = np.array([plugin.score(state, pod, node_info) for node_info in nodes], dtype=np.int64)
    if isinstance(plugin, ScoreAllPlugin):
        at_once = plugin.score_all(state, pod, nodes)
        assert at_once is None or (at_once.tolist() == one_by_one.tolist() and at_once.dtype == np.int64)
    if isinstance(plugin, NormalizePlugin):
        before = one_by_one.copy()
        normalized = plugin.normalize(state, pod, nodes, one_by_one)
        assert one_by_one.tolist() == before.tolist(), "normalize returns a new array"
        one_by_one = normalized
    table = plugin.score_table(state, pod, nodes) if isinstance(plugin, TabledScorePlugin) else None
    if table is not None:
        assert [table[0][place] for place in table[1]] == one_by_one.tolist()
    assert all(0 <= score <= 100 for score in one_by_one)


# Generates a cluster. Asks each plugin about each node in a separate call (`filter`, `score`). If the plugin also has
# methods for all nodes (`filter_all`, `score_all`), asks the plugin about all nodes in one call. This one call must
# return the same verdict and the same score for each node as the separate calls.
@settings(max_examples=80, deadline=None)
@given(objects=clusters(), pending=pods("new"), version=st.sampled_from(VERSIONS), drawn=st.data())
def test_a_plugin_decides_alike_for_one_node_and_for_all_on_generated_clusters(
    objects: list[dict[str, Any]], pending: dict[str, Any], version: KubeVersion, drawn: st.DataObject
) -> None:
    snapshot, pod = load_objects(objects), pod_from_manifest(pending)
    rows = drawn.draw(
        st.lists(st.integers(0, len(snapshot.nodes) - 1), min_size=1, unique=True).map(sorted),
        label="rows that passed the filters",
    )
    for name in IN_TREE:
        plugin = built(name, version)
        note(name)
        if serves(plugin, "filter"):
            check_filter(plugin, pod, snapshot)
        if serves(plugin, "score"):
            check_score(plugin, pod, snapshot, np.array(rows, dtype=np.intp))


@pytest.mark.parametrize("name", sorted({*FILTERS, *SCORERS}))
def test_a_plugin_gives_equal_results_for_one_node_and_for_all_nodes_of_recorded_clusters(name: str) -> None:
    plugin = built(name)
    for case in CASES:
        snapshot = load_objects(case["objects"])
        for key in case["pods"]:
            pod = snapshot.pod(key)
            if serves(plugin, "filter"):
                check_filter(plugin, pod, snapshot)
            if serves(plugin, "score"):
                check_score(plugin, pod, snapshot, snapshot.columns.all_rows)


@pytest.mark.parametrize("name", IN_TREE)
def test_a_plugin_has_its_registered_name_and_an_extension_point(name: str) -> None:
    plugin = built(name)
    assert plugin.name == name
    assert any(serves(plugin, point) for point in METHOD_OF)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_every_default_plugin_is_registered(version: KubeVersion) -> None:
    assert {plugin.name for plugin in default_plugins(version)} <= set(IN_TREE)


REFUSES = {"unschedulable", "unresolvable", "error", "unknown"}
PLUGIN_FILES = sorted((Path(__file__).parents[3] / "scheduler_core" / "plugins").glob("*.py"))


def texts_of(tree: ast.AST) -> Iterator[str]:
    return (each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str))


@cache
def texts_of_the_table_tests() -> str:
    """Identifiers too: a test may name the class of a plugin."""
    paths = (path for path in Path(__file__).parents[1].rglob("test_*.py") if path != Path(__file__))
    trees = [ast.parse(path.read_text()) for path in paths]
    names = (each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name))
    return "\n".join({*(text for tree in trees for text in texts_of(tree)), *names})


@pytest.mark.parametrize("path", PLUGIN_FILES, ids=lambda path: path.stem)
def test_a_table_test_expects_each_text_with_which_a_plugin_refuses(path: Path) -> None:
    calls = (
        each
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in REFUSES
    )
    texts = {text.strip() for call in calls for argument in call.args for text in texts_of(argument)}
    assert {text for text in texts if text not in texts_of_the_table_tests()} == set()


@pytest.mark.parametrize("name", IN_TREE)
def test_a_plugin_has_a_table_test(name: str) -> None:
    assert name in texts_of_the_table_tests().splitlines()
