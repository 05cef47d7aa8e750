"""Tests which nodes could go, where their pods move, and why the others must stay."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core import Scheduler, Snapshot, load_objects
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.snapshot.snapshot import UnknownNodeError
from scheduler_core.testing.builders import PodBuilder, a_budget, a_node, a_pod, manifests
from scheduler_core.what_if.removable_nodes import removable_nodes

SCHEDULER = Scheduler()


def web(name: str, on: str, cpu: str = "1") -> PodBuilder:
    return a_pod(name).labelled(app="web").requesting(cpu=cpu).on(on).owned_by("ReplicaSet", "web")


def cluster(*more: Any, nodes: int = 3) -> Snapshot:
    return load_objects(manifests(*(a_node(f"n{number}") for number in range(nodes)), *more))


def test_the_least_used_nodes_go_and_each_pod_moves_once() -> None:
    snapshot = cluster(web("a", "n0"), web("b", "n1"), web("c", "n2", "2"))
    found = removable_nodes(SCHEDULER, snapshot)
    assert found.names == ("n0", "n1")
    assert [dict(node.moves) for node in found.nodes] == [{"default/a": "n2"}, {"default/b": "n2"}]
    assert list(found.kept) == ["n2"]
    assert found.without.node_names == ("n2",)
    assert len(found.without.placed_pods) == 3
    assert snapshot.node_names == ("n0", "n1", "n2")


def test_the_pods_of_the_last_node_have_nowhere_to_go() -> None:
    found = removable_nodes(SCHEDULER, cluster(web("a", "n0"), nodes=1))
    assert (found.names, list(found.kept)) == ((), ["n0"])
    assert found.kept["n0"].startswith("default/a ")


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (a_pod("bare").on("n0"), "default/bare "),
        (web("big", "n0", "4"), "default/big "),
        (
            web("rests", "n0").with_field(
                "metadata.annotations", {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
            ),
            "default/rests asks not to be disturbed",
        ),
    ],
    ids=["no controller", "no room", "asks not to be disturbed"],
)
def test_a_node_stays_because_of_one_of_its_pods(pod: PodBuilder, said: str) -> None:
    found = removable_nodes(SCHEDULER, cluster(pod, web("other", "n1"), web("another", "n2")), ["n0"])
    assert found.names == ()
    assert found.kept["n0"].startswith(said)


def test_a_node_stays_if_a_budget_forbids_the_eviction() -> None:
    budget = a_budget("guard").selecting(app="web").allowing(0)
    found = removable_nodes(SCHEDULER, cluster(web("a", "n0"), budget), ["n0"])
    assert "guard" in found.kept["n0"]


def test_a_node_stays_if_its_pods_would_preempt_others() -> None:
    filling = [web(f"low{number}", f"n{number}", "4").with_priority(1) for number in (1, 2)]
    found = removable_nodes(SCHEDULER, cluster(web("high", "n0", "2").with_priority(9), *filling), ["n0"])
    assert found.names == ()
    assert found.kept["n0"].startswith("default/high 0/3 nodes are available: ")


def test_no_search_for_victims_is_made_for_a_node_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(DefaultPreemption, "find_candidates", searched)
    filling = [web(f"low{number}", f"n{number}", "4").with_priority(1) for number in (1, 2)]
    found = removable_nodes(SCHEDULER, cluster(web("high", "n0", "2").with_priority(9), *filling))
    assert found.names == ()


def test_daemonset_pods_go_with_their_node() -> None:
    agents = [a_pod(f"agent{n}").on(f"n{n}").owned_by("DaemonSet", "agent") for n in range(2)]
    found = removable_nodes(SCHEDULER, cluster(*agents, web("a", "n1"), nodes=2))
    assert (found.names, dict(found.nodes[0].moves)) == (("n0",), {})
    assert [pod.name for pod in found.without.placed_pods] == ["agent1", "a"]


def test_not_more_nodes_go_than_wanted() -> None:
    found = removable_nodes(SCHEDULER, cluster(web("a", "n2")), most=1)
    assert (found.names, found.kept["n1"]) == (("n0",), "1 node goes already")


def test_a_pod_whose_data_would_be_lost_is_named() -> None:
    scratch = web("a", "n0").with_field("spec.volumes", [{"name": "scratch", "emptyDir": {}}])
    (node,) = removable_nodes(SCHEDULER, cluster(scratch), ["n0"]).nodes
    assert node.loses_data == ("default/a",)


def test_an_unknown_candidate_is_an_error() -> None:
    with pytest.raises(UnknownNodeError):
        removable_nodes(SCHEDULER, cluster(), ["n9"])


def test_the_least_used_node_goes_first_whatever_its_name() -> None:
    found = removable_nodes(SCHEDULER, cluster(web("a", "n0", "2"), web("b", "n1"), web("c", "n2", "2")), most=1)
    assert found.names == ("n1",)
