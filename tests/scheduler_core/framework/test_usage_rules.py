"""Tests score plugins whose scores depend only on the requests of the pods on each node. The sum of these scores is
cached as one column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import Scores, UsageRulePlugin
from scheduler_core.framework.scoring import by_usage as module
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.snapshot.pods.usage import Usage
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods

NEWEST = KubeVersion.parse("1.36")
BUILT = {name: IN_TREE[name](Configuration().profiles[0].plugin_args(name, NEWEST), NEWEST) for name in IN_TREE}
RULES: dict[str, Any] = {name: plugin for name, plugin in BUILT.items() if isinstance(plugin, UsageRulePlugin)}


def test_only_the_plugins_for_resources_and_devices_have_usage_rules() -> None:
    assert set(RULES) == {"NodeResourcesFit", "NodeResourcesBalancedAllocation", "DynamicResources"}


# A usage rule is a score plugin of the type `UsageRulePlugin`. Its scores may depend on two things only: on the usage
# (the requests of the pods on each node) and on the incoming pod's key (the result of the plugin's method `usage_key`).
# Example: two incoming pods have equal keys. Then the plugin gives both pods the same scores on the same nodes.
@settings(max_examples=60, deadline=None)
@given(objects=clusters(), one=pods("one"), other=pods("other"))
def test_a_usage_rule_depends_only_on_usage_and_its_key(
    objects: list[dict[str, Any]], one: dict[str, Any], other: dict[str, Any]
) -> None:
    snapshot = load_objects(objects)
    for plugin in RULES.values():
        mine, theirs = (prepared(plugin, manifest, snapshot) for manifest in (one, other))
        if mine is None:
            continue
        nodes = NodeList(snapshot)
        usage = snapshot.tally(UsageTally(nodes.rules)).usage
        scores = plugin.score_usage(mine, nodes, usage)
        pod = pod_from_manifest(one)
        assert scores.tolist() == plugin.score_all(mine, pod, nodes).tolist()
        assert scores.tolist() == [plugin.score(mine, pod, node_info) for node_info in nodes]
        if theirs is not None and plugin.usage_key(theirs) == plugin.usage_key(mine):
            assert np.array_equal(plugin.score_usage(theirs, nodes, usage), scores)


def prepared(plugin: Any, manifest: dict[str, Any], snapshot: Snapshot) -> CycleState | None:
    """Returns the state after the plugin's PreFilter and PreScore, or None if the plugin does not score the pod."""
    state, pod, nodes = CycleState(), pod_from_manifest(manifest), NodeList(snapshot)
    if hasattr(plugin, "pre_filter") and not plugin.pre_filter(state, pod, nodes).verdict.is_success:
        return None
    if hasattr(plugin, "pre_score") and not plugin.pre_score(state, pod, nodes).is_success:
        return None
    return state


def told(result: CycleResult) -> tuple[Any, ...]:
    return result.node, result.best, dict(result.scores), result.highest_total, result.runner_up


SIZES = ("250m", "1", "2500m")
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(("place", "remove", "cordon", "uncordon", "resize")), st.integers(0, 5), st.integers(0, 2)
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(changes=CHANGES)
def test_cached_scores_equal_those_of_a_new_snapshot_after_any_changes(changes: list[tuple[str, int, int]]) -> None:
    """Changes one snapshot step by step, so that its caches are used again. After each change, a new snapshot of the
    same nodes and pods must give the same scores."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_FEWEST_NODES", 0)
        scheduler = Scheduler()
        snapshot = Snapshot.of([a_node(f"n{number}").offering(cpu="8").build() for number in range(6)])
        for turn, (act, number, size) in enumerate(changes):
            snapshot = changed(snapshot, act, f"n{number}", SIZES[size], f"p{turn}")
            for asked in (a_pod("small").requesting(cpu="500m"), a_pod("large").requesting(cpu="3"), a_pod("bare")):
                fresh = Snapshot.of(snapshot.nodes, snapshot.placed_pods)
                assert told(scheduler.schedule(snapshot, asked.build())) == told(
                    Scheduler().schedule(fresh, asked.build())
                )


def changed(snapshot: Snapshot, act: str, node: str, cpu: str, name: str) -> Snapshot:
    match act:
        case "place":
            return snapshot.with_pod_placed(a_pod(name).requesting(cpu=cpu).build(), node)
        case "remove":
            return snapshot.without_pods([pod.key for pod in snapshot.pods_on(node)[:1]])
        case "cordon":
            return snapshot.with_node_cordoned(node)
        case "uncordon":
            return snapshot.with_node_uncordoned(node)
        case _:
            return snapshot.with_node_replaced(
                a_node(node).offering(cpu={"250m": "4", "1": "8"}.get(cpu, "16")).build()
            )


class CountsPods:
    """The only score plugin of its profile: a node's score is the number of its pods."""

    name = "CountsPods"

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return len(node_info.pods)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores | None:
        return None

    def usage_key(self, state: CycleState) -> str:
        return ""

    def score_usage(self, state: CycleState, nodes: NodeList, usage: Usage) -> Scores:
        return usage.pods


def test_an_invalid_score_does_not_change_the_requests_of_the_snapshot() -> None:
    """The plugin returns the snapshot's own array."""
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "CountsPods"}]}, "score": {"disabled": [{"name": "*"}]}},
    }
    profile["plugins"]["score"]["enabled"] = [{"name": "CountsPods"}]
    configuration = Configuration.from_mapping(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    )
    scheduler = Scheduler(configuration, plugins={"CountsPods": lambda _args, _version: CountsPods()})
    full = [a_pod(f"p{number}").on("n0").build() for number in range(101)]
    snapshot = Snapshot.of([a_node(name).offering(pods="200").build() for name in ("n0", "n1")], full)
    assert "returns an invalid score" in scheduler.schedule(snapshot, a_pod().build()).error
    assert snapshot.tally(UsageTally(scheduler.rules)).usage.pods.tolist() == [101, 0]
