"""Tests how `careen shadow` handles each event of the cluster. `careen shadow` compares the bindings of kube-scheduler
with its own decisions. The tests show which bindings it compares, and which it cannot compare."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from careen.shadow import shadow as module
from careen.shadow.outcomes import Agreement, AgreementReason
from careen.shadow.shadow import Shadow
from scheduler_core import ClusterCache, Scheduler
from scheduler_core.config.configuration import Configuration
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.sampling import Search
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.testing.builders import a_node, a_pod

Json = dict[str, Any]


class Town:
    """A cluster in memory, and a `careen shadow` that compares each binding in this cluster with its own decision. By
    default the cluster has the nodes n1 and n2, and n2 has more room."""

    def __init__(self, nodes: Json | None = None, configuration: Json | None = None) -> None:
        self.seconds = 0.0
        self.version = 1
        self.cache = ClusterCache()
        scheduler = Scheduler(Configuration.from_mapping(configuration) if configuration else None)
        self.shadow = Shadow(
            self.cache,
            scheduler,
            profiles=("default-scheduler",),
            monotonic=lambda: self.seconds,
            now=lambda: datetime(2026, 3, 4, tzinfo=UTC),
        )
        self.lists({name: {"cpu": cpu} for name, cpu in (nodes or {"n1": "4", "n2": "8"}).items()})

    def lists(self, nodes: Json, *pods: Json) -> None:
        for kind, items in (("Node", [node(name, **each) for name, each in nodes.items()]), ("Pod", list(pods))):
            self.shadow.before_list(kind)
            self.cache.apply({"kind": f"{kind}List", "apiVersion": "v1", "items": items})

    def event(self, type_: str, manifest: Json) -> None:
        self.version += 1
        manifest = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        line = json.dumps({"type": type_, "object": manifest}).encode()
        self.shadow.before(manifest["kind"], line)
        self.shadow.after(manifest["kind"], has_changed=bool(self.cache.apply(line)))

    def comes(self, name: str, **more: Any) -> None:
        self.event("ADDED", pod(name, **more))

    def bound(self, name: str, on: str, **more: Any) -> None:
        self.event("MODIFIED", pod(name, on=on, **more))

    def said(self) -> dict[str, int]:
        """Let one second pass, and let `careen shadow` compare the new bindings. Return how often each result has
        occurred, for example `{"default-scheduler order": 1}`."""
        self.seconds += 1.0
        while self.shadow.compare():
            pass
        return {f"{profile} {reason.value}": n for (profile, reason), n in self.shadow.tally.counts.items()}


def node(name: str, cpu: str = "4") -> Json:
    manifest: Json = {**a_node(name).manifest, "kind": "Node", "apiVersion": "v1"}
    manifest["status"] = {**manifest["status"], "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}}
    return manifest


def pod(
    name: str, on: str = "", cpu: str = "1", scheduler: str = "default-scheduler", uid: str = "", **status: Any
) -> Json:
    manifest: Json = json.loads(json.dumps(a_pod(name).manifest))
    manifest |= {"kind": "Pod", "apiVersion": "v1"}
    manifest["metadata"]["uid"] = uid or f"uid-{name}"
    manifest["spec"] |= {"nodeName": on, "schedulerName": scheduler}
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    manifest["status"] = {"phase": "Pending", **status}
    return manifest


NO_ROOM = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


def test_a_binding_to_the_best_node_is_recorded_as_an_agreement() -> None:
    town = Town()
    town.comes("web")
    town.bound("web", "n2")
    assert town.said() == {"default-scheduler first": 1}


def test_a_binding_to_another_node_is_recorded_as_a_disagreement() -> None:
    town = Town()
    town.comes("web")
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler other-node": 1}
    (kept,) = town.shadow.tally.disagreements
    assert (kept.pod, kept.node, kept.said) == ("default/web", "n1", (("n2", 1.0),))
    assert kept.why.startswith("n1 has the score ")
    assert kept.why.endswith(", that of n2")


def test_careen_shadow_reports_the_plugin_that_refuses_the_node_of_a_binding() -> None:
    town = Town({"n1": "1", "n2": "8"})
    town.comes("web", cpu="2")
    town.bound("web", "n1", cpu="2")
    assert town.said() == {"default-scheduler refused-node": 1}
    (kept,) = town.shadow.tally.disagreements
    assert (kept.plugin, kept.why) == ("NodeResourcesFit", "NodeResourcesFit: Insufficient cpu")


def test_a_binding_of_a_pod_that_fits_nowhere_is_recorded_as_a_disagreement() -> None:
    town = Town({"n1": "1"})
    town.comes("web", cpu="2")
    town.bound("web", "n1", cpu="2")
    assert town.said() == {"default-scheduler no-node-said": 1}


@pytest.mark.parametrize(("cpu", "reason"), [("100", "both-pending"), ("1", "node-said")])
def test_careen_shadow_compares_a_pending_pod_only_once(cpu: str, reason: str) -> None:
    town = Town()
    town.comes("web", cpu=cpu)
    for turn in range(3):
        town.event("MODIFIED", pod("web", cpu=cpu, conditions=NO_ROOM, nominatedNodeName="n1" if turn == 1 else ""))
    assert town.said() == {f"default-scheduler {reason}": 1}


def test_careen_shadow_compares_a_pending_pod_again_when_it_is_bound() -> None:
    town = Town({"n1": "1"})
    town.comes("web", cpu="2")
    town.event("MODIFIED", pod("web", cpu="2", conditions=NO_ROOM))
    assert town.said() == {"default-scheduler both-pending": 1}
    town.event("ADDED", node("n3", "8"))
    town.seconds += 5
    town.bound("web", "n3", cpu="2")
    assert town.said() == {"default-scheduler both-pending": 1, "default-scheduler first": 1}


def test_careen_shadow_does_not_compare_a_pod_that_it_never_saw_unbound() -> None:
    town = Town()
    town.comes("web", on="n1")
    assert town.said() == {"default-scheduler first-seen-bound": 1}


def test_careen_shadow_does_not_compare_a_mirror_pod() -> None:
    town = Town()
    manifest = pod("static", on="n1")
    manifest["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    town.event("ADDED", manifest)
    assert town.said() == {}


def test_later_events_of_a_bound_pod_are_not_treated_as_bindings() -> None:
    town = Town()
    town.comes("web")
    for phase in ("Pending", "Running", "Running", "Succeeded"):
        town.event("MODIFIED", pod("web", on="n2", phase=phase))
    town.event("DELETED", pod("web", on="n2"))
    assert town.said() == {"default-scheduler first": 1}


def test_careen_shadow_counts_a_duplicate_binding_once() -> None:
    town = Town()
    town.comes("web")
    town.bound("web", "n2")
    town.bound("web", "n2")
    assert town.said() == {"default-scheduler first": 1}


def test_a_new_pod_with_the_same_name_is_treated_as_another_pod() -> None:
    town = Town()
    town.comes("web")
    town.event("MODIFIED", pod("web", on="n2", uid="another"))
    assert town.said() == {"default-scheduler first-seen-bound": 1}


def test_a_pod_of_another_scheduler_is_counted_under_the_name_of_that_scheduler() -> None:
    town = Town()
    town.comes("web", scheduler="gang")
    town.bound("web", "n1", scheduler="gang")
    assert town.said() == {"gang other-scheduler": 1}
    (cause,) = town.shadow.tally.causes()
    assert cause.startswith("1 pod has the schedulerName gang, but the configuration that careen was given has no")


def test_a_binding_to_an_unknown_node_cannot_be_compared() -> None:
    town = Town()
    town.comes("web")
    town.bound("web", "n9")
    assert town.said() == {"default-scheduler unknown-node": 1}


def test_bindings_that_happened_during_a_gap_of_the_watch_are_not_compared() -> None:
    town = Town()
    town.comes("web")
    town.comes("late")
    town.bound("late", "n1")
    town.lists({"n1": {}, "n2": {"cpu": "8"}}, pod("web", on="n1"))
    assert town.said() == {}
    assert town.shadow.tally.gaps == 1
    town.comes("next")
    town.bound("next", "n2")
    assert town.said() == {"default-scheduler first": 1}


def test_a_binding_cannot_be_compared_while_another_pod_is_nominated() -> None:
    town = Town()
    town.comes("first", nominatedNodeName="n2")
    town.comes("web")
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler nominated": 1}


def test_careen_shadow_compares_no_pods_if_the_scheduler_has_an_extender() -> None:
    extender = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    town = Town(configuration={**configuration, "extenders": [extender]})
    town.comes("web")
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler extenders": 1}


def test_careen_shadow_counts_bindings_without_comparing_them_if_too_many_bindings_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    town = Town()
    for name in "abcde":
        town.comes(name, cpu="10m")
    for name in "abcde":
        town.bound(name, "n2", cpu="10m")
    assert town.said()["default-scheduler behind"] == 3
    assert town.shadow.waiting == 0


# ---- other states that the scheduler may have seen ----


def test_the_comparison_is_undecided_if_two_pods_may_be_bound_out_of_order() -> None:
    """`careen shadow` sees that `web` was bound before `big`. But the scheduler may have chosen the node of `big`
    first, and then n1 is the better node for `web`."""
    town = Town()
    town.comes("big", cpu="6")
    town.comes("web")
    town.bound("web", "n1")
    town.bound("big", "n2", cpu="6")
    assert town.said() == {"default-scheduler order": 1, "default-scheduler first": 1}
    assert not town.shadow.tally.disagreements


def test_a_binding_is_compared_if_every_possible_order_of_the_pods_gives_the_same_result() -> None:
    town = Town({"n1": "4", "n2": "40"})
    town.comes("small", cpu="10m")
    town.comes("web")
    town.bound("web", "n1")
    town.bound("small", "n2", cpu="10m")
    assert town.said() == {"default-scheduler other-node": 1, "default-scheduler first": 1}


def test_careen_shadow_assumes_that_a_pod_bound_much_later_was_also_scheduled_later() -> None:
    town = Town()
    town.comes("big", cpu="6")
    town.comes("web")
    town.bound("web", "n1")
    town.seconds += 1.5
    town.bound("big", "n2", cpu="6")
    assert town.said()["default-scheduler other-node"] == 1


def test_careen_shadow_assumes_that_a_pod_of_higher_priority_is_scheduled_first() -> None:
    town = Town()
    low, high = pod("big", cpu="6"), pod("web")
    low["spec"]["priority"], high["spec"]["priority"] = 0, 1000
    town.event("ADDED", low)
    town.event("ADDED", high)
    town.event("MODIFIED", {**high, "spec": {**high["spec"], "nodeName": "n1"}})
    town.event("MODIFIED", {**low, "spec": {**low["spec"], "nodeName": "n2"}})
    assert town.said()["default-scheduler other-node"] == 1


def test_the_comparison_is_undecided_if_a_node_changed_after_the_pods_creation() -> None:
    """The scheduler may have chosen n1 before it saw that n2 had become larger."""
    town = Town({"n1": "8", "n2": "4"})
    town.comes("web")
    town.event("MODIFIED", node("n2", "64"))
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler changed-meanwhile": 1}


def test_careen_shadow_assumes_that_the_scheduler_saw_changes_older_than_the_pod() -> None:
    town = Town({"n1": "8", "n2": "4"})
    town.event("MODIFIED", node("n2", "64"))
    town.comes("web")
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler other-node": 1}


def test_careen_shadow_assumes_that_the_scheduler_saw_a_change_five_seconds_older_than_the_binding() -> None:
    town = Town({"n1": "8", "n2": "4"})
    town.comes("web")
    town.event("MODIFIED", node("n2", "64"))
    town.seconds += 5
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler other-node": 1}


def test_a_heartbeat_of_a_node_does_not_affect_the_comparison() -> None:
    town = Town()
    town.comes("web")
    town.event("MODIFIED", node("n2", "8"))
    town.bound("web", "n1")
    assert town.said() == {"default-scheduler other-node": 1}


def test_the_comparison_is_undecided_if_another_pod_was_deleted_after_the_pods_creation() -> None:
    town = Town()
    town.comes("big", cpu="7")
    town.bound("big", "n2", cpu="7")
    assert town.said() == {"default-scheduler first": 1}
    town.comes("web")
    town.event("DELETED", pod("big", on="n2", cpu="7"))
    town.bound("web", "n1")
    assert town.said()["default-scheduler changed-meanwhile"] == 1


# ---- learning ----


def test_careen_shadow_learns_the_start_of_the_next_search_from_bindings() -> None:
    town = Town({f"n{number:03}": "8" for number in range(150)})
    assert town.shadow.estimate is None
    for number in range(6):
        town.comes(f"web-{number}")
        town.bound(f"web-{number}", "n007")
        town.said()
    assert town.shadow.estimate is not None
    assert town.shadow.estimate.bindings == 6
    town.lists({f"n{number:03}": {"cpu": "8"} for number in range(150)})
    assert town.shadow.estimate is None, (
        "after a gap of the watch, `careen shadow` must forget the estimated search position"
    )


def test_careen_shadow_counts_disagreements_and_returns_each_disagreement_once() -> None:
    town = Town()
    for number in range(40):
        town.comes(f"web-{number}", cpu="1m")
        town.bound(f"web-{number}", "n1", cpu="1m")
        town.said()
    tally = town.shadow.tally
    missed = tally.number(Agreement.DISAGREED)
    assert missed >= 30
    assert tally.is_too_low
    assert any("do not have the highest score" in cause for cause in tally.causes())
    assert len(tally.new_disagreements()) == missed
    assert tally.new_disagreements() == []


@pytest.mark.parametrize("line", [b"", b"null", b"{}", b'{"type":"ADDED","object":{"metadata":null}}', b"[" * 9999])
def test_an_unreadable_line_of_the_watch_is_skipped(line: bytes) -> None:
    town = Town()
    town.shadow.before("Pod", line)
    town.shadow.after("Pod", has_changed=False)
    assert town.said() == {}


def learned_town(configuration: Json | None = None) -> Town:
    """Return a cluster of 130 nodes in which `careen shadow` has compared one binding. From this binding, it has
    learned where in the node list the scheduler's next search may begin."""
    town = Town({f"n{number:03}": str(4 + number % 9) for number in range(130)}, configuration)
    town.comes("first")
    town.bound("first", "n003")
    town.said()
    return town


TWO_PROFILES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}],
}


@pytest.mark.parametrize(("scheduler", "is_moved"), [("second", True), ("foreign", False)])
def test_only_a_schedulers_own_bindings_move_the_start_of_its_next_search(scheduler: str, is_moved: bool) -> None:
    """A scheduler starts each search of the node list at the position where its last search ended. All profiles of a
    scheduler, such as `second` here, share this position. Another scheduler (`foreign`) has a position of its own."""
    town = learned_town(TWO_PROFILES)
    before = town.shadow.estimate
    town.comes("web", scheduler=scheduler)
    town.bound("web", "n001", scheduler=scheduler)
    assert (town.shadow.estimate != before) is is_moved


def test_a_new_pod_that_is_already_bound_moves_the_start_of_the_next_search() -> None:
    town = learned_town()
    before = town.shadow.estimate
    town.event("ADDED", pod("web", on="n001"))
    assert town.shadow.estimate != before
    assert town.shadow.tally.counts["default-scheduler", AgreementReason.FIRST_SEEN_BOUND] == 1


def test_careen_shadow_learns_the_rate_of_bindings_per_second() -> None:
    town = learned_town()
    assert town.shadow.learnt is not None
    assert town.shadow.learnt.others == pytest.approx(1 / 60)
    assert Town().shadow.learnt is None


def of_a_set(manifest: Json, **metadata: Any) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db", "controller": True}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner], **metadata}}


@pytest.mark.parametrize(("is_cordoned", "others"), [(True, 1), (False, 2)])
def test_careen_shadow_does_not_count_the_replacement_of_a_drained_pod(is_cordoned: bool, others: int) -> None:
    """The pod `first` always counts. If the node was not cordoned, no drain displaced db-0, so the replacement of db-0
    also counts."""
    town = learned_town()
    town.event("ADDED", of_a_set(pod("db-0", on="n001")))
    drained = node("n001")
    town.event("MODIFIED", {**drained, "spec": {**drained.get("spec", {}), "unschedulable": is_cordoned}})
    town.event("MODIFIED", of_a_set(pod("db-0", on="n001"), deletionTimestamp="2026-03-04T00:00:00Z"))
    town.event("DELETED", of_a_set(pod("db-0", on="n001"), deletionTimestamp="2026-03-04T00:00:00Z"))
    town.event("ADDED", of_a_set(pod("db-0", uid="uid-new")))
    town.event("MODIFIED", of_a_set(pod("db-0", on="n003", uid="uid-new")))
    assert town.shadow.learnt is not None
    assert town.shadow.learnt.others == pytest.approx(others / 60, abs=1e-3)


def test_no_replacement_is_expected_for_a_pod_that_finished_on_a_cordoned_node() -> None:
    town = learned_town()
    town.event("ADDED", of_a_set(pod("db-0", on="n001")))
    drained = node("n001")
    town.event("MODIFIED", {**drained, "spec": {**drained.get("spec", {}), "unschedulable": True}})
    town.event("MODIFIED", of_a_set(pod("db-0", on="n001", phase="Succeeded")))
    town.event("ADDED", of_a_set(pod("db-1", uid="uid-new")))
    town.event("MODIFIED", of_a_set(pod("db-1", on="n003", uid="uid-new")))
    assert town.shadow.learnt is not None
    assert town.shadow.learnt.others == pytest.approx(2 / 60, abs=1e-3)


def test_careen_shadow_processes_bindings_in_the_order_in_which_their_pods_were_created() -> None:
    sizes = {"web-1": "500m", "web-2": "3", "web-3": "1500m"}

    def learned(*bound: str) -> Town:
        town = learned_town()
        for name, cpu in sizes.items():
            town.comes(name, cpu=cpu)
        came, search, nodes = town.cache.snapshot(), Search(40), {}
        for name in sizes:
            result = Scheduler().schedule(came, came.pod(f"default/{name}"), search=search)
            assert result.node is not None
            assert result.next_start is not None
            came, search = Scheduler().place(came, result), Search(result.next_start)
            nodes[name] = result.node
        for name in bound:
            town.bound(name, nodes[name], cpu=sizes[name])
        town.said()
        return town

    in_order, swapped = learned("web-1", "web-2", "web-3"), learned("web-3", "web-1", "web-2")
    assert in_order.shadow.estimate is not None
    assert in_order.shadow.estimate.bindings == 4
    assert swapped.shadow.estimate == in_order.shadow.estimate


def test_careen_shadow_compares_the_binding_of_an_older_pod_first() -> None:
    town = learned_town()
    town.comes("web-1")
    town.comes("web-2")
    town.bound("web-2", "n002")
    town.seconds += 0.9
    town.bound("web-1", "n001")
    town.seconds += 0.5
    assert not town.shadow.compare()
    town.seconds += 0.5
    assert town.shadow.compare()
    assert town.shadow.compare()
    assert not town.shadow.compare()


def test_the_estimated_search_position_is_the_same_if_bindings_are_compared_together_or_one_by_one() -> None:
    def learned(*, waits: bool) -> Town:
        town = learned_town(TWO_PROFILES)
        town.comes("web")
        town.comes("other", scheduler="second")
        town.bound("web", "n008")
        if not waits:
            town.said()
        town.bound("other", "n001", scheduler="second")
        town.said()
        return town

    waiting, compared = learned(waits=True), learned(waits=False)
    assert compared.shadow.estimate is not None
    assert waiting.shadow.estimate == compared.shadow.estimate


def test_a_thousand_incomparable_bindings_update_the_estimated_search_position_fewer_than_a_hundred_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The estimated search position says where in the node list the scheduler's next search may begin. After a few
    dozen bindings that cannot be compared, every position is possible, and further updates would only cost time."""
    updates: list[SearchEstimate] = []
    after_unknown = SearchEstimate.after_unknown_binding

    def counted(self: SearchEstimate, snapshot: Snapshot) -> SearchEstimate:
        updates.append(after_unknown(self, snapshot))
        return updates[-1]

    monkeypatch.setattr(SearchEstimate, "after_unknown_binding", counted)
    town = learned_town()
    town.comes("web")
    town.bound("web", "n008")
    for number in range(1000):
        town.event("ADDED", pod(f"burst-{number}", on=f"n{number % 130:03}", cpu="1m"))
    town.said()
    last = updates[-1]
    assert town.shadow.estimate == last
    assert len(updates) < 100
    nodes = len(town.cache.snapshot().nodes)
    assert max(weight for _, weight in after_unknown(last, town.cache.snapshot()).starts()) < 1.2 / nodes


def test_careen_shadow_processes_the_first_list_of_pods_in_the_order_of_their_bindings() -> None:
    """The first list of pods does not say in which order the pods were created. `careen shadow` therefore assumes that
    the scheduler handled them in the order of their bindings."""
    sizes = {"web-1": "500m", "web-2": "3", "web-3": "1500m"}

    def learned(*, at_once: bool) -> SearchEstimate | None:
        nodes = {f"n{number:03}": {"cpu": str(4 + number % 9)} for number in range(130)}
        town = learned_town()
        town.lists(nodes, *(pod(name, cpu=cpu) for name, cpu in sizes.items()))
        before, search = town.cache.snapshot(), Search(40)
        for name, cpu in sizes.items():
            result = Scheduler().schedule(before, before.pod(f"default/{name}"), search=search)
            assert result.node is not None
            assert result.next_start is not None
            before, search = Scheduler().place(before, result), Search(result.next_start)
            town.bound(name, result.node, cpu=cpu)
            if not at_once:
                town.said()
        town.said()
        return town.shadow.estimate

    assert learned(at_once=False) is not None
    assert learned(at_once=True) == learned(at_once=False)
