"""Tests preemption at the end of a whole cycle: the node, the victims, the messages, and an earlier nomination."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration, ExtenderSettings
from scheduler_core.config.plugin_args import DefaultPreemptionArgs
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.extenders.chain import ExtenderChain
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.framework.extension_points import Nomination
from scheduler_core.framework.verdict import SUCCESS, unresolvable
from scheduler_core.plugins import default_preemption
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.preemption.victims import select_victims
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_budget, a_node, a_pod

NODES = [a_node(name).offering(cpu="1", memory="1Gi", pods="10").manifest for name in ("n1", "n2")]


def running(name: str, node: str, priority: int = 0, cpu: str = "1", **status: Any) -> dict[str, Any]:
    started = status.pop("started", "2026-01-01T00:00:00Z")
    return (
        a_pod(name)
        .requesting(cpu=cpu)
        .with_priority(priority)
        .on(node)
        .labelled(app=name)
        .with_field("status.startTime", started)
        .manifest
    )


def wanting(cpu: str = "1", priority: int = 100, **fields: Any) -> Any:
    return a_pod("new").requesting(cpu=cpu).with_priority(priority)


def cycle(
    pod: Any, *objects: dict[str, Any], nodes: Any = None, configuration: Configuration | None = None, **settings: Any
) -> CycleResult:
    snapshot = load_objects([*(NODES if nodes is None else nodes), *objects, pod.manifest])
    assert not snapshot.problems, snapshot.problems
    return Scheduler(configuration, **settings).schedule(snapshot, snapshot.pod("default/new"))


def test_preemption_chooses_the_node_with_the_least_important_victim() -> None:
    result = cycle(wanting(), running("a", "n1", 5), running("b", "n2", 1))
    assert result.node is None
    assert result.preemption == Nomination(node="n2", victims=("default/b",))
    assert result.sentence == "0/2 nodes are available: 2 Insufficient cpu."


def test_preemption_waits_for_a_terminating_victim() -> None:
    going = running("a", "n1", 1)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    result = cycle(wanting(), going, running("b", "n2", 500))
    assert result.preemption == Nomination(node="n1", victims=())


def test_preemption_chooses_a_more_important_victim_to_avoid_a_budget_violation() -> None:
    result = cycle(
        wanting(), running("a", "n1", 1), running("b", "n2", 50), a_budget().selecting(app="a").allowing(0).manifest
    )
    assert result.preemption == Nomination(node="n2", victims=("default/b",))


def test_a_preemption_that_finds_no_victims_clears_the_nomination() -> None:
    result = cycle(wanting(), running("a", "n1", 100), running("b", "n2", 500))
    assert (
        result.sentence
        == "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes "
        "are available: 2 No preemption victims found for incoming pod."
    )
    assert result.nomination == Nomination(clears=True)
    assert result.preemption is None


def test_preemption_does_not_try_unresolvable_nodes() -> None:
    result = cycle(wanting(cpu="2"), running("a", "n1"), running("b", "n2"))
    assert (
        result.sentence
        == "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes "
        "are available: 2 Preemption is not helpful for scheduling."
    )


def test_preemption_until_1_33_tries_a_node_smaller_than_the_request() -> None:
    result = cycle(wanting(cpu="2"), running("a", "n1"), running("b", "n2"), kube_version="1.33")
    assert (
        result.sentence
        == "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_the_preemption_message_counts_the_reasons_of_the_nodes() -> None:
    nodes = [*NODES, a_node("n3").offering(cpu="1", memory="1Gi", pods="10").tainted("gpu").manifest]
    # n1 has a pod of the incoming pod's priority; n2 has no pod of lower priority; n3 is tainted.
    result = cycle(
        wanting(), running("a", "n1", 0, "500m"), running("x", "n1", 100, "500m"), running("b", "n2", 100), nodes=nodes
    )
    assert result.sentence.endswith(
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming "
        "pod, 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_does_not_preempt_if_its_preemption_policy_is_never() -> None:
    result = cycle(wanting().with_field("spec.preemptionPolicy", "Never"), running("a", "n1"), running("b", "n2"))
    assert result.sentence.endswith(
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )
    assert result.nomination is None


def test_a_pod_waits_while_its_victims_terminate() -> None:
    victim = running("a", "n1")
    victim["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    victim["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    result = cycle(wanting().with_field("status.nominatedNodeName", "n1"), victim, running("b", "n2"))
    assert result.sentence.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert result.nomination is None


def test_a_pod_does_not_take_room_of_a_nominated_pod_of_higher_priority() -> None:
    snapshot = load_objects([*NODES, running("a", "n1", 1), running("b", "n2", 2), wanting().manifest])
    promised = a_pod("promised").requesting(cpu="1").with_priority(1000).build()
    result = Scheduler().schedule(snapshot, snapshot.pod("default/new"), nominated={"n1": (promised,)})
    assert result.preemption == Nomination(node="n2", victims=("default/b",))


def test_a_pod_may_take_room_of_a_nominated_pod_of_lower_priority() -> None:
    snapshot = load_objects([*NODES, running("a", "n1", 1), running("b", "n2", 2), wanting().manifest])
    promised = a_pod("promised").requesting(cpu="1").with_priority(50).build()
    result = Scheduler().schedule(snapshot, snapshot.pod("default/new"), nominated={"n1": (promised,)})
    assert result.preemption == Nomination(node="n1", victims=("default/a",))


def test_preemption_can_free_a_read_write_once_pod_claim() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "pv"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"accessModes": ["ReadWriteOncePod"]},
    }
    uses = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    holder = a_pod("holder").with_priority(1).on("n1").with_field("spec.volumes", uses).manifest
    result = cycle(wanting().with_field("spec.volumes", uses), holder, claim, volume)
    assert result.preemption == Nomination(node="n1", victims=("default/holder",))


# ---- how many candidates ----


@pytest.mark.parametrize(
    ("args", "nodes", "wanted"),
    [
        (DefaultPreemptionArgs(), 50, 50),
        (DefaultPreemptionArgs(), 500, 100),
        (DefaultPreemptionArgs(), 5000, 500),
        (
            DefaultPreemptionArgs(min_candidate_nodes_absolute=3),
            100,
            100,
        ),  # few nodes: all are checked, whatever the settings
        (DefaultPreemptionArgs(min_candidate_nodes_absolute=3), 110, 11),
        (DefaultPreemptionArgs(min_candidate_nodes_absolute=30), 110, 30),
        (DefaultPreemptionArgs(min_candidate_nodes_absolute=0), 300, 30),
        (DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0), 200, 200),
    ],
)
def test_the_plugin_arguments_set_the_number_of_preemption_candidates(
    args: DefaultPreemptionArgs, nodes: int, wanted: int
) -> None:
    assert DefaultPreemption(args)._wanted(nodes) == wanted


def limited(absolute: int) -> Configuration:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": absolute}
    return Configuration.from_mapping({"profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}]})


MANY = range(1, 121)


def many_nodes() -> list[dict[str, Any]]:
    """Returns 120 nodes, which are so many that the search for candidates may stop early."""
    return [a_node(f"n{number}").offering(cpu="1", memory="1Gi", pods="10").manifest for number in MANY]


def test_the_preemption_search_stops_after_enough_candidates() -> None:
    pods = [running(f"p{number}", f"n{number}", 5 if number < 120 else 1) for number in MANY]
    assert cycle(wanting(), *pods, nodes=many_nodes(), configuration=limited(1)).preemption == Nomination(
        node="n1", victims=("default/p1",), is_sampled=True
    )
    assert cycle(wanting(), *pods, nodes=many_nodes(), configuration=limited(120)).preemption == Nomination(
        node="n120", victims=("default/p120",)
    )


def test_the_preemption_search_continues_while_all_candidates_violate_budgets() -> None:
    pods = [
        running(f"p{number}" if number < 120 else "free", f"n{number}", 1 if number < 120 else 5) for number in MANY
    ]
    guarded = [a_budget(f"b{number}").selecting(app=f"p{number}").allowing(0).manifest for number in range(1, 120)]
    result = cycle(wanting(), *pods, *guarded, nodes=many_nodes(), configuration=limited(1))
    assert result.preemption == Nomination(node="n120", victims=("default/free",))


# ---- what is kept for later pods with the same spec ----


def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes on which victims are selected, as they come."""
    found: list[str] = []

    def selected(trial: Any, state: Any, pod: Any, node_info: Any, budgets: Any, **rules: Any) -> Any:
        found.append(node_info.name)
        return select_victims(trial, state, pod, node_info, budgets, **rules)

    monkeypatch.setattr(default_preemption, "select_victims", selected)
    return found


def test_a_second_pod_with_the_same_spec_tries_only_the_nodes_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tried(monkeypatch)
    snapshot = load_objects([*NODES, running("a", "n1", 5), running("b", "n2", 1), wanting().manifest])
    scheduler, pod = Scheduler(), snapshot.pod("default/new")
    assert scheduler.schedule(snapshot, pod).preemption == Nomination(node="n2", victims=("default/b",))
    changed = snapshot.with_pods_exchanged([("default/b", a_pod("c").requesting(cpu="1").with_priority(9).build())])
    result = scheduler.schedule(changed, replace(pod, name="other"))
    assert result.preemption == Nomination(node="n1", victims=("default/a",))
    assert nodes == ["n1", "n2", "n2"]


def test_another_spec_or_another_scheduler_tries_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tried(monkeypatch)
    snapshot = load_objects([*NODES, running("a", "n1", 5), running("b", "n2", 1), wanting().manifest])
    pod, other = snapshot.pod("default/new"), wanting(priority=3).build()
    scheduler = Scheduler()
    assert scheduler.schedule(snapshot, pod).preemption == Nomination(node="n2", victims=("default/b",))
    assert scheduler.schedule(snapshot, other).preemption == Nomination(node="n2", victims=("default/b",))
    assert Scheduler().schedule(snapshot, pod).preemption == Nomination(node="n2", victims=("default/b",))
    assert nodes == ["n1", "n2"] * 3


def test_a_second_pod_sees_what_disruption_budgets_allow_now() -> None:
    guard = a_budget("guard").selecting(app="b")
    objects = [*NODES, running("a", "n1", 5), running("b", "n2", 1), wanting().manifest]
    calm, strict = (load_objects([*objects, guard.allowing(number).manifest]) for number in (1, 0))
    scheduler, pod = Scheduler(), calm.pod("default/new")
    assert scheduler.schedule(calm, pod).preemption == Nomination(node="n2", victims=("default/b",))
    changed = calm.with_objects(budgets=strict.objects.budgets)
    assert scheduler.schedule(changed, pod).preemption == Nomination(node="n1", victims=("default/a",))


def test_a_second_pod_sees_the_pods_nominated_now() -> None:
    snapshot = load_objects([*NODES, running("a", "n1", 1), running("b", "n2", 2), wanting().manifest])
    scheduler, pod = Scheduler(), snapshot.pod("default/new")
    promised = {"n1": (a_pod("promised").requesting(cpu="1").with_priority(1000).build(),)}
    for nominated, node, victim in (({}, "n1", "a"), (promised, "n2", "b"), ({}, "n1", "a")):
        result = scheduler.schedule(snapshot, pod, nominated=nominated)
        assert result.preemption == Nomination(node=node, victims=(f"default/{victim}",))


def test_nothing_is_kept_for_a_pod_that_depends_on_the_pods_of_other_nodes() -> None:
    zone = {"topology.kubernetes.io/zone": "a"}
    nodes = [a_node(name).labelled(**zone).offering(cpu="1", memory="1Gi", pods="10").manifest for name in ("n1", "n2")]
    apart = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "foe"}}}
    shy = wanting().with_field("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", [apart])
    snapshot = load_objects([*nodes, running("a", "n1", 1), running("foe", "n2", 1000), shy.manifest])
    scheduler, pod = Scheduler(), snapshot.pod("default/new")
    assert scheduler.schedule(snapshot, pod).preemption is None
    friend = a_pod("friend").requesting(cpu="1").with_priority(1000).build()
    peaceful = snapshot.with_pods_exchanged([("default/foe", friend)])
    assert scheduler.schedule(peaceful, pod).preemption == Nomination(node="n1", victims=("default/a",))


def test_nothing_is_kept_for_a_filter_that_does_not_say_that_it_reads_only_the_spec() -> None:
    class Teams:
        name = "Teams"

        def node_key(self, pod: Any) -> Any:
            return ()

        def filter(self, _state: Any, pod: Any, node_info: Any) -> Any:
            return SUCCESS if pod.labels["team"] == node_info.name else unresolvable("another team's node")

    profile = {"plugins": {"filter": {"enabled": [{"name": "Teams"}]}}}
    configuration = Configuration.from_mapping({"profiles": [profile]})
    scheduler = Scheduler(configuration, plugins={"Teams": lambda _args, _version: Teams()})
    snapshot = load_objects([*NODES, running("n1", "n1"), running("n2", "n2"), wanting().manifest])
    pod = snapshot.pod("default/new")
    for team in ("n1", "n2"):
        result = scheduler.schedule(snapshot, replace(pod, labels={"team": team}))
        assert result.preemption == Nomination(node=team, victims=(f"default/{team}",))


# ---- at the queue's door, and with extenders ----


def test_a_pod_stays_out_of_the_queue_until_its_victims_are_deleted() -> None:
    pod = a_pod("new").build()
    busy = DefaultPreemption(is_preempting=lambda asked: asked.key == pod.key)
    assert busy.pre_enqueue(pod) == unresolvable("waiting for the preemption for this pod to be finished")
    assert busy.pre_enqueue(replace(pod, name="other")) == SUCCESS


class Says:
    """An extender that returns `answer`, or fails if `answer` is None."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer

    def post(self, verb: str, body: bytes) -> bytes:
        if self.answer is None:
            raise ExtenderError("no answer")
        return self.answer


def with_extender(answer: bytes | None, **settings: Any) -> dict[str, Any]:
    extender = ExtenderSettings(url_prefix="http://e", preempt_verb="preempt", **settings)
    return {"configuration": Configuration(extenders=(extender,)), "transport": lambda _: Says(answer)}


def test_an_extender_may_remove_preemption_candidates() -> None:
    pods = (running("a", "n1", 5), running("b", "n2", 1))
    narrowed = cycle(
        wanting(), *pods, **with_extender(b'{"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "default-a"}]}}}')
    )
    emptied = cycle(wanting(), *pods, **with_extender(b'{"NodeNameToMetaVictims": {}}'))
    assert narrowed.preemption == Nomination(node="n1", victims=("default/a",))
    assert emptied.preemption is None
    assert emptied.sentence.endswith("preemption: no candidate node for preemption")
    assert emptied.nomination is None


def test_a_failing_extender_ends_preemption_with_its_error() -> None:
    result = cycle(wanting(), running("a", "n1", 5), running("b", "n2", 1), **with_extender(None))
    assert result.preemption is None
    assert result.sentence == "0/2 nodes are available: 2 Insufficient cpu. preemption: extender http://e: no answer"


def test_preemption_has_no_extenders_by_default() -> None:
    assert DefaultPreemption().extenders == ExtenderChain()
