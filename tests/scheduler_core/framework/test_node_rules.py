"""Tests plugins whose results depend only on the nodes: their results are cached while the nodes stay the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import NodeRulePlugin
from scheduler_core.model.pod import Pod
from scheduler_core.plugins import IN_TREE
from scheduler_core.plugins.taint_toleration import TaintToleration
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.drawn_clusters import clusters, load_objects, pod_from_manifest, pods

NEWEST = KubeVersion.parse("1.36")
RULES = {
    name: plugin
    for name in IN_TREE
    if isinstance(
        plugin := IN_TREE[name](Configuration().profiles[0].plugin_args(name, NEWEST), NEWEST), NodeRulePlugin
    )
}
TOLERATION = {"key": "dedicated", "operator": "Exists"}


def told(result: CycleResult) -> tuple[Any, ...]:
    return result.node, result.best, dict(result.statuses), dict(result.scores)


# A node rule is a plugin of the type `NodeRulePlugin`. The pod's key is the value that the plugin's method `node_key`
# returns for the pod. The plugin must give two pods with equal keys the same results on the same nodes, even if one of
# the two snapshots has no placed pods and no other objects.
@settings(max_examples=60, deadline=None)
@given(objects=clusters(), one=pods("one"), other=pods("other"))
def test_the_results_of_a_node_rule_depend_only_on_the_nodes_and_the_pods_key(
    objects: list[dict[str, Any]], one: dict[str, Any], other: dict[str, Any]
) -> None:
    snapshot = load_objects(objects)
    bare = Snapshot.of(snapshot.nodes)
    pod, alike = pod_from_manifest(one), pod_from_manifest(other)
    for plugin in RULES.values():
        same = alike if plugin.node_key(alike) == plugin.node_key(pod) else pod
        assert answers(plugin, pod, snapshot) == answers(plugin, same, bare), plugin.name


def answers(plugin: Any, pod: Pod, snapshot: Snapshot) -> list[Any]:
    nodes, state = NodeList(snapshot), CycleState()
    found: list[Any] = []
    if hasattr(plugin, "filter_all"):
        refusals = plugin.filter_all(state, pod, nodes)
        found = [refusals.verdict(int(code)) for code in refusals.codes]
    if not hasattr(plugin, "score_all"):
        return found
    if hasattr(plugin, "pre_score") and not plugin.pre_score(state, pod, nodes).is_success:
        return found
    scores = plugin.score_all(state, pod, nodes)
    if hasattr(plugin, "normalize"):
        scores = plugin.normalize(state, pod, nodes, scores)
    return [*found, *scores.tolist()]


def test_the_cached_result_of_a_node_rule_is_dropped_after_a_cordon(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    filter_all = TaintToleration.filter_all

    def counted(self: TaintToleration, state: CycleState, pod: Pod, nodes: NodeList) -> Any:
        asked.append(pod.name)
        return filter_all(self, state, pod, nodes)

    monkeypatch.setattr(TaintToleration, "filter_all", counted)
    scheduler = Scheduler()
    snapshot = Snapshot.of([a_node("n1").build(), a_node("n2").tainted("dedicated").build(), a_node("n3").build()])
    snapshot = snapshot.with_pod_placed(a_pod("there").build(), "n1")
    assert scheduler.schedule(snapshot, a_pod("a").build()).best == ("n3",)
    assert scheduler.schedule(snapshot.without_pod("default/there"), a_pod("b").build()).best == ("n1", "n3")
    assert asked == ["a"]
    tolerant = a_pod("c").tolerating(TOLERATION).build()
    assert scheduler.schedule(snapshot.with_pod_placed(a_pod("d").build(), "n3"), tolerant).node == "n2"
    assert asked == ["a", "c"]
    assert scheduler.schedule(snapshot.with_node_cordoned("n3"), a_pod("e").build()).best == ("n1",)
    assert asked == ["a", "c", "e"]


def test_two_schedulers_on_one_snapshot_use_their_own_settings() -> None:
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    ]}]}}  # fmt: skip
    configuration = Configuration.from_mapping(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]}],
        }
    )
    snapshot = Snapshot.of([a_node("n1").build(), a_node("n2").build()])
    assert Scheduler().schedule(snapshot, a_pod().build()).best == ("n1", "n2")
    assert Scheduler(configuration).schedule(snapshot, a_pod().build()).best == ("n2",)
    assert Scheduler().schedule(snapshot, a_pod().build()).best == ("n1", "n2")


def test_scores_are_computed_for_nodes_without_a_cached_score() -> None:
    """The two pods fit on different nodes. So the scores cached for one pod lack some nodes of the other pod, and the
    scheduler must compute the missing scores."""
    snapshot = Snapshot.of(
        [
            a_node("n0").cordoned().build(),
            a_node("n1").tainted("soft", effect="PreferNoSchedule").build(),
            a_node("n2")
            .offering(cpu="1")
            .tainted("soft", effect="PreferNoSchedule")
            .tainted("more", effect="PreferNoSchedule")
            .build(),
            *(a_node(f"n{number}").offering(cpu="1" if number < 6 else "4").build() for number in range(3, 12)),
        ]
    )
    small, large = a_pod("small").build(), a_pod("large").requesting(cpu="2").build()
    for _ in range(2):
        for pod in (small, large, small):
            fresh = Snapshot.of(snapshot.nodes)
            assert told(Scheduler().schedule(fresh, pod)) == told(Scheduler().schedule(snapshot, pod))
    shared = Scheduler()
    alone = [told(Scheduler().schedule(Snapshot.of(snapshot.nodes), pod)) for pod in (small, large, small)]
    assert [told(shared.schedule(snapshot, pod)) for pod in (small, large, small)] == alone


def test_cached_results_of_node_rules_cannot_be_changed() -> None:
    scheduler, snapshot = Scheduler(), Snapshot.of([a_node("n1").build(), a_node("n2").build()])
    passed = scheduler.schedule(snapshot, a_pod().build()).diagnosis.passed
    with pytest.raises(ValueError, match="read-only"):
        passed[0] = 1
