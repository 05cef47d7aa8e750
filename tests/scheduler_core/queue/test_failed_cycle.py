"""Tests what follows a failed cycle: the pod is put back into the queue, and its nomination is kept, set or cleared."""

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.extension_points import Nomination, PreFilterResult
from scheduler_core.framework.verdict import Verdict, VerdictCode, error
from scheduler_core.model.pod import Pod
from scheduler_core.queue.failed_cycle import FailedCycle, handle_failed_cycle, nominated_by
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import Room, SchedulingQueue
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod

NODE = a_node("n1").offering(cpu="1", memory="1Gi", pods="10").manifest


def queue() -> SchedulingQueue:
    return SchedulingQueue(lambda one, other: one.timestamp < other.timestamp, {})


def new(priority: int = 100, **fields: Any) -> Any:
    return a_pod("new").requesting(cpu="1").with_priority(priority)


def occupant(priority: int) -> dict[str, Any]:
    return a_pod("old").requesting(cpu="1").with_priority(priority).on("n1").manifest


def failed(
    pod: Any, *objects: dict[str, Any], line: SchedulingQueue | None = None, scheduler: Scheduler | None = None
) -> tuple[FailedCycle, SchedulingQueue, QueuedPod, CycleResult]:
    line = queue() if line is None else line
    snapshot = load_objects([*objects, pod.manifest])
    line.add(snapshot.pod("default/new"), 10.0)
    queued = line.pop_pod("default/new", 10.0)
    assert queued is not None
    result = (scheduler or Scheduler()).schedule(snapshot, queued.pod)
    assert result.node is None
    return handle_failed_cycle(line, queued, result, 20.0), line, queued, result


def test_a_refused_pod_waits_for_events_of_the_plugins_that_refused_it() -> None:
    outcome, line, queued, _ = failed(new(), NODE, occupant(100))
    assert (outcome.room, outcome.reason, queued.unschedulable_plugins, queued.timestamp) == (
        Room.WAITING,
        "Unschedulable",
        {"NodeResourcesFit"},
        20.0,
    )
    assert outcome.message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
    assert line.in_flight == ()


def test_a_pod_refused_by_a_prefilter_waits_for_events_of_that_plugin() -> None:
    pod = new().with_field("spec.volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}])
    assert failed(pod, NODE)[2].unschedulable_plugins == {"VolumeRestrictions"}


def only_on(*names: str) -> dict[str, Any]:
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}}


class Never:
    """Chooses no node."""

    name = "Never"

    def pre_filter(self, state: Any, pod: Pod, nodes: Any) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset())


def test_a_plugin_that_chose_the_nodes_has_refused_the_others() -> None:
    """As UnschedulablePlugins in findNodesThatFitPod, v1.36: also if the chosen nodes do not exist."""
    outcome, _, queued, _ = failed(new().with_field("spec.affinity", only_on("gone")), NODE)
    assert (outcome.room, queued.unschedulable_plugins) == (Room.WAITING, {"NodeAffinity"})
    pod = new().with_field("spec.affinity", only_on("n1"))
    assert failed(pod, NODE, occupant(100))[2].unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}
    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Never"}]}}}]}
    )
    scheduler = Scheduler(configuration, plugins={"Never": lambda _args, _version: Never()})
    outcome, _, queued, _ = failed(new(), NODE, scheduler=scheduler)
    assert (outcome.room, queued.unschedulable_plugins) == (Room.WAITING, {"Never"})


def test_a_prefilter_that_refuses_for_good_is_the_only_one_that_refused() -> None:
    pod = new().with_field("spec.affinity", only_on("n1"))
    pod = pod.with_field("spec.volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}])
    assert failed(pod, NODE)[2].unschedulable_plugins == {"VolumeRestrictions"}


def test_a_failed_cycle_with_preemption_nominates_the_node() -> None:
    outcome, line, queued, _ = failed(new(), NODE, occupant(1))
    assert outcome.nominated_node == "n1"
    assert line.nominations.on("n1") == (queued.pod,)


def test_a_pod_that_preemption_cannot_help_loses_its_nomination() -> None:
    outcome, line, _, _ = failed(new().with_field("status.nominatedNodeName", "n1"), NODE, occupant(100))
    assert outcome.nominated_node == ""
    assert line.nominations.all == ()


def test_a_pod_that_waits_for_its_victims_keeps_its_nomination() -> None:
    victim = occupant(1)
    victim["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    victim["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    outcome, line, queued, _ = failed(new().with_field("status.nominatedNodeName", "n1"), NODE, victim)
    assert outcome.nominated_node is None
    assert line.nominations.on("n1") == (queued.pod,)


def test_a_nomination_clears_nominations_of_lower_priority_for_the_same_node() -> None:
    line = queue()
    less, more = (a_pod(name).with_priority(priority).build() for name, priority in (("less", 5), ("more", 500)))
    for pod in (less, more):
        line.nominations.add(pod, "n1")
    # The more important one needs no cpu, so the incoming pod still fits beside it.
    outcome, _, queued, _ = failed(new(), NODE, occupant(1), line=line)
    assert outcome.displaced == (less,)
    assert line.nominations.on("n1") == (more, queued.pod)


class Broken:
    name = "Broken"

    def pre_filter(self, state: Any, pod: Pod, nodes: Any) -> PreFilterResult:
        return PreFilterResult(error("lost my mind"))


def test_an_error_moves_the_pod_to_the_backoff_queue_and_clears_its_nomination() -> None:
    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Broken"}]}}}]}
    )
    scheduler = Scheduler(configuration, plugins={"Broken": lambda _args, _version: Broken()})
    outcome, line, queued, _ = failed(new().with_field("status.nominatedNodeName", "n1"), NODE, scheduler=scheduler)
    assert (outcome.room, outcome.reason, outcome.nominated_node) == (Room.BACKOFF, "SchedulerError", "")
    assert outcome.message == 'running PreFilter plugin "Broken": lost my mind'
    assert (queued.unschedulable_plugins, queued.consecutive_errors, line.nominations.all) == (set(), 1, ())


def test_a_pod_in_a_cluster_without_nodes_is_unschedulable_but_retried_as_after_an_error() -> None:
    outcome, _, queued, _ = failed(new())
    assert (outcome.room, outcome.reason, outcome.message, outcome.nominated_node) == (
        Room.BACKOFF,
        "Unschedulable",
        "no nodes available to schedule pods",
        "",
    )
    assert queued.consecutive_errors == 1


@pytest.mark.parametrize(("version", "nominated_node"), [("1.34", None), ("1.35", "")])
def test_since_1_35_the_nomination_is_cleared_without_a_postfilter_plugin(
    version: str, nominated_node: str | None
) -> None:
    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}]}
    )
    outcome, _, _, result = failed(new(), NODE, occupant(1), scheduler=Scheduler(configuration, kube_version=version))
    assert outcome.nominated_node == nominated_node
    assert result.sentence == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("nomination", "expected"),
    [(None, None), (Nomination(clears=True), ""), (Nomination(node="n1", victims=("default/x",)), "n1")],
)
def test_the_result_of_a_cycle_sets_or_keeps_or_clears_the_nominated_node(
    nomination: Nomination | None, expected: str | None
) -> None:
    *_, result = failed(new(), NODE, occupant(100))
    assert nominated_by(CycleResult(result.pod, result.diagnosis, nomination=nomination)) == expected


@pytest.mark.parametrize(("length", "event_length", "end"), [(1024, 1024, "xxxx"), (1025, 1024, " ...")])
def test_the_message_of_an_event_is_cut_to_1024_characters(length: int, event_length: int, end: str) -> None:
    outcome = FailedCycle(room=Room.WAITING, reason="Unschedulable", message="x" * length)
    assert (len(outcome.event), outcome.event[-4:]) == (event_length, end)


def test_a_plugin_with_a_pending_verdict_is_recorded_as_pending() -> None:
    class Patient:
        name = "Patient"

        def filter(self, state: Any, pod: Pod, node_info: Any) -> Verdict:
            return Verdict(VerdictCode.PENDING, ("not yet",))

    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Patient"}]}}}]}
    )
    _, _, queued, _ = failed(
        new(), NODE, scheduler=Scheduler(configuration, plugins={"Patient": lambda _args, _version: Patient()})
    )
    assert (queued.unschedulable_plugins, queued.pending_plugins) == (set(), {"Patient"})
