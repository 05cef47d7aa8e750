"""The agent reads the kinds of facts (`Evidence`) that a decision requests, in the right order. A fact that the agent
cannot read has the value unknown."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from careen.agent.need_watch import NeedWatch
from careen.agent.observe import DRY_RUNS_SECONDS, Observer
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import (
    Alert,
    Evictable,
    Fleet,
    Gone,
    Holders,
    Need,
    NeedAnswer,
    NodeView,
    NotAsked,
    Sample,
    Unknown,
)
from careen.core.facts.phases import ROW, Evidence, Phase
from careen.core.facts.policy import AlertPolicy, HealthQuery, Matcher, Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.settings.go_regexp import GoRegexp
from tests.careen.agent.conftest import KEY, FakeAlerts, Shell

POLICY = Policy(node_name="n1")


@dataclass
class FakeMetrics:
    answer: tuple[Sample, ...]

    async def samples(self, query: str, *, fresh_seconds: float) -> tuple[Sample, ...] | Unknown:
        return self.answer


NODE = "GET /api/v1/nodes/n1"
LOCK = "GET /apis/apps/v1/namespaces/careen/daemonsets/careen"


def put_in_phase(shell: Shell, phase: Phase, **more: Any) -> None:
    shell.put_node(
        "n1", annotations={"careen.dev/progress": to_annotation(Progress(phase=phase.value, claim="c1", **more))}
    )


async def begin(shell: Shell, phase: Phase = Phase.IDLE) -> Observation:
    return await shell.observer().begin(Memory(), phase, POLICY)


async def test_the_agent_of_an_idle_node_sends_one_request_to_observe_the_node(shell: Shell) -> None:
    shell.put_node("n1")
    seen = await begin(shell)
    assert shell.requests == [NODE]
    assert isinstance(seen.node, NodeView)
    assert (seen.boot_id, seen.need.answer, seen.uptime, seen.now) == (
        "boot-n1",
        NeedAnswer.NO,
        5000.0,
        shell.clock.now(),
    )
    assert all(
        isinstance(getattr(seen, name), NotAsked)
        for name in (
            "lock",
            "peers",
            "holders",
            "waiters",
            "crowd",
            "fleet",
            "pods",
            "alerts",
            "foreign",
            "forecast",
            "evictability",
            "owners",
        )
    )
    assert isinstance(seen.clock_skew_seconds, float)


async def test_an_idle_node_is_read_again_only_after_five_minutes(shell: Shell) -> None:
    shell.put_node("n1")
    observer = shell.observer()
    for seconds in (0, 5, 299, 300, 304):
        shell.clock.seconds = seconds
        await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert shell.requests == [NODE, NODE]


async def test_an_idle_node_is_read_again_five_minutes_after_the_start_of_the_last_read(shell: Shell) -> None:
    shell.put_node("n1")
    shell.wire.after = lambda _: setattr(shell.clock, "seconds", shell.clock.seconds + 7)
    observer = shell.observer()
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    shell.clock.seconds = 300
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert shell.requests == [NODE, NODE]


async def test_a_failed_read_of_the_node_is_repeated_in_the_next_loop_round(shell: Shell) -> None:
    shell.put_node("n1")
    observer = shell.observer()
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    shell.clock.seconds = 300
    shell.wire.before = lambda _: Unclear("the network is down")
    assert isinstance((await observer.begin(Memory(), Phase.IDLE, POLICY)).node, Unknown)
    asked = len(shell.requests)
    assert isinstance((await observer.begin(Memory(), Phase.IDLE, POLICY)).node, Unknown)
    assert len(shell.requests) > asked


async def test_the_agent_reads_the_node_when_the_host_begins_to_need_a_reboot(shell: Shell) -> None:
    """The agent's next write is a patch that sets a taint. The patch needs the current resource version of the Node."""
    shell.put_node("n1")
    observer = shell.observer()
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    shell.host.need = Need(answer=NeedAnswer.YES)
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert shell.requests == [NODE, NODE]


async def test_a_request_to_look_again_makes_the_agent_forget_the_answers_of_commands(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(NeedWatch, "forget", lambda _: forgotten.append("forgotten"))
    shell.put_node("n1")
    await shell.observer().begin(Memory(), Phase.IDLE, POLICY)
    assert forgotten == []
    shell.put_node("n1", annotations={keys.RECHECK: "2026-03-04T12:00:00Z"})
    await shell.observer().begin(Memory(), Phase.IDLE, POLICY)
    assert forgotten == ["forgotten"]


async def test_the_agent_of_a_waiting_node_reads_the_lock_more_often_than_it_reads_the_node(shell: Shell) -> None:
    put_in_phase(shell, Phase.WAITING)
    shell.host.need = Need(answer=NeedAnswer.YES)
    observer = shell.observer()
    for seconds in (0, 3, 6, 29, 30):
        shell.clock.seconds = seconds
        await observer.begin(Memory(), Phase.WAITING, POLICY)
    assert (shell.requests.count(NODE), shell.requests.count(LOCK)) == (2, 5)


async def test_an_idle_agent_does_not_read_the_node_again_after_it_wrote_the_node(shell: Shell) -> None:
    shell.put_node("n1")
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert isinstance(seen.node, NodeView)
    observer.saw_node(replace(seen.node, resource_version="77"), shell.clock.monotonic())
    again = await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert isinstance(again.node, NodeView)
    assert again.node.resource_version == "77"
    observer.saw_node(None, 0.0)
    await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert shell.requests == [NODE, NODE]


@pytest.mark.parametrize(("seconds_later", "reads"), [((0.02,), 1), ((0.9,), 1), ((1.0,), 2), ((0.02, 0.04), 2)])
async def test_the_agent_of_a_draining_node_reads_its_node_at_the_latest_in_the_second_turn_after_a_write(
    shell: Shell, seconds_later: tuple[float, ...], reads: int
) -> None:
    """The response to a write contains the Node. So the first turn after a write reads the Node only if at least one
    second has passed since the write. The second turn always reads the Node. Otherwise the agent could see a new hold
    (an annotation by which a person keeps the node from rebooting) too late, and would continue the drain."""
    put_in_phase(shell, Phase.DRAINING)
    observer = shell.observer()
    shell.clock.seconds = 50.0
    seen = await observer.begin(Memory(), Phase.DRAINING, POLICY)
    assert isinstance(seen.node, NodeView)
    observer.saw_node(seen.node, shell.clock.monotonic())
    for later in seconds_later:
        shell.clock.seconds = 50.0 + later
        await observer.begin(Memory(), Phase.DRAINING, POLICY)
    assert shell.requests.count(NODE) == reads


@pytest.mark.parametrize(
    ("seconds_later", "node_reads", "lock_reads"), [((0.02,), 1, 1), ((1.0,), 2, 2), ((0.02, 0.04), 2, 2)]
)
async def test_the_agent_reads_the_lock_at_the_latest_in_the_second_turn_after_a_write(
    shell: Shell, seconds_later: tuple[float, ...], node_reads: int, lock_reads: int
) -> None:
    put_in_phase(shell, Phase.CLAIMING)
    observer = shell.observer()
    shell.clock.seconds = 50.0
    seen = await observer.begin(Memory(), Phase.CLAIMING, POLICY)
    assert isinstance(seen.lock, LockReading)
    observer.saw_lock(replace(seen.lock, resource_version="78"), shell.clock.monotonic())
    observer.moves_on()
    for number, later in enumerate(seconds_later):
        shell.clock.seconds = 50.0 + later
        again = await observer.begin(Memory(), Phase.CLAIMING, POLICY)
        assert isinstance(again.lock, LockReading)
        assert (again.lock.resource_version == "78") is (number == 0 and later < 1.0)
    assert (shell.requests.count(NODE), shell.requests.count(LOCK)) == (node_reads, lock_reads)


@pytest.mark.parametrize(
    ("phase", "later", "lists"),
    [
        pytest.param(Phase.CLAIMING, 1.9, 1, id="less than two seconds after the last read"),
        pytest.param(Phase.CLAIMING, 2.0, 2, id="two seconds after the last read"),
        pytest.param(Phase.WAITING, 0.1, 2, id="the node still waits for a claim"),
        pytest.param(Phase.DRAINING, 0.1, 2, id="the node drains"),
    ],
)
async def test_the_last_search_for_other_reboot_coordinators_is_reused_only_in_the_phase_claiming(
    shell: Shell, phase: Phase, later: float, lists: int
) -> None:
    put_in_phase(shell, Phase.WAITING)
    observer = shell.observer()
    await observer.add(await observer.begin(Memory(), Phase.WAITING, POLICY), {Evidence.FOREIGN}, POLICY)
    put_in_phase(shell, phase)
    observer.saw_node(None, 0.0)
    shell.clock.seconds += later
    seen = await observer.add(await observer.begin(Memory(), phase, POLICY), {Evidence.FOREIGN}, POLICY)
    assert seen.foreign == ()
    assert sum(request.startswith("GET /apis/apps/v1/daemonsets") for request in shell.requests) == lists


async def test_the_agent_reads_the_lock_again_before_the_cordon_although_it_just_wrote_the_lock(shell: Shell) -> None:
    """The agent cordons its node only if the current lock contains the node's claim, so it reads the lock again."""
    put_in_phase(shell, Phase.CLAIMING)
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.CLAIMING, POLICY)
    assert isinstance(seen.lock, LockReading)
    observer.saw_lock(replace(seen.lock, resource_version="78"), shell.clock.monotonic())
    observer.moves_on()
    again = await observer.begin(Memory(), Phase.CLAIMING, POLICY)
    fresh = await observer.add(again, {Evidence.LOCK}, POLICY)
    assert isinstance(fresh.lock, LockReading)
    assert fresh.lock.resource_version == seen.lock.resource_version


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.IDLE])
async def test_the_phase_recorded_on_the_node_determines_which_facts_the_agent_reads(
    shell: Shell, phase: Phase
) -> None:
    """The phase in the Node's annotation determines which kinds of facts the agent reads, even if the agent has just
    started and does not remember the phase."""
    put_in_phase(shell, phase)
    seen = await begin(shell, Phase.IDLE)
    asked = {kind for kind in Evidence if not seen.lacks(kind)}
    assert asked == set(ROW[phase].evidence)


async def test_the_agent_reads_only_the_node_if_the_progress_annotation_is_unreadable(shell: Shell) -> None:
    shell.put_node("n1", annotations={"careen.dev/progress": '{"version":99}'})
    await begin(shell)
    assert shell.requests == [NODE]


async def test_a_deleted_node_is_gone_and_an_unreadable_node_is_unknown(shell: Shell) -> None:
    assert (await begin(shell)).node == Gone()
    shell.wire.before = lambda _: Unclear("the network is down")
    node = (await begin(shell)).node
    assert isinstance(node, Unknown)
    assert "the network is down" in node.why


async def test_the_clock_difference_to_the_server_is_unknown_before_the_first_response(shell: Shell) -> None:
    shell.wire.before = lambda _: Unclear("down")
    assert isinstance((await begin(shell)).clock_skew_seconds, Unknown)


ALL_LISTS = [
    Evidence.LOCK,
    Evidence.PEERS,
    Evidence.HOLDERS,
    Evidence.WAITERS,
    Evidence.CROWD,
    Evidence.FLEET,
    Evidence.PODS,
    Evidence.FOREIGN,
    Evidence.EVICTABILITY,
    Evidence.OWNERS,
]


@pytest.mark.parametrize("evidence", ALL_LISTS)
async def test_a_list_is_unknown_and_not_empty_if_the_server_does_not_answer(shell: Shell, evidence: Evidence) -> None:
    shell.put_node("n1")
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, POLICY)
    shell.wire.before = lambda _: Unclear("down")
    seen = await observer.add(seen, [evidence], POLICY)
    assert isinstance(getattr(seen, evidence.value), Unknown)


@pytest.mark.parametrize(("waiting", "counted"), [(0, 0), (1, 1), (100, 100), (101, None), (250, None)])
async def test_the_number_of_waiting_nodes_needs_one_request_and_is_unknown_above_a_hundred(
    shell: Shell, waiting: int, counted: int | None
) -> None:
    shell.put_node("n1")
    for number in range(waiting):
        shell.put_node(f"w{number}", labels={keys.REBOOT_LABEL: ("ready", "required")[number % 2]})
    seen = await add(shell, Evidence.CROWD)
    assert seen.crowd == counted
    assert shell.requests == ["GET /api/v1/nodes"]


async def add(shell: Shell, *wanted: Evidence, policy: Policy = POLICY) -> Observation:
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, policy)
    shell.wire.asked.clear()
    return await observer.add(seen, wanted, policy)


async def test_the_agent_reads_the_lock_and_then_the_node_of_every_claim(shell: Shell) -> None:
    shell.put_node("n1")
    shell.put_node("n2")
    rows = [{"nodeID": name} for name in ("n1", "n2", "gone")]
    shell.put_daemonset(annotations={KEY: json.dumps({"nodeID": "n1", "locks": rows, "maxOwners": 3})})
    seen = await add(shell, Evidence.HOLDERS)
    assert shell.requests[0] == LOCK
    assert sorted(shell.requests[1:]) == ["GET /api/v1/nodes/gone", "GET /api/v1/nodes/n1", "GET /api/v1/nodes/n2"]
    assert isinstance(seen.holders, Holders)
    assert [node.name for node in seen.holders.nodes] == ["n1", "n2"]
    assert seen.holders.absent == {"gone"}
    assert isinstance(seen.lock, LockReading)


async def test_the_lock_is_read_once_and_before_the_list_of_nodes(shell: Shell) -> None:
    shell.put_node("n1")
    await add(shell, Evidence.HOLDERS, Evidence.PEERS, Evidence.LOCK)
    assert shell.requests[-2:] == [LOCK, "GET /api/v1/nodes"]
    assert shell.requests.count("GET /api/v1/nodes") == 1


async def test_a_thousand_claims_cause_few_requests_and_invalid_node_names_cause_none(shell: Shell) -> None:
    """Any client that may write the lock can fill the lock, up to a thousand entries."""
    shell.put_node("n1")
    rows = [5, {"nodeID": ".."}, *({"nodeID": f"n{number}"} for number in range(1, 999))]
    shell.put_daemonset(annotations={KEY: json.dumps({"nodeID": "n1", "maxOwners": 9, "locks": rows})})
    seen = await add(shell, Evidence.HOLDERS)
    assert isinstance(seen.holders, Holders)
    assert [node.name for node in seen.holders.nodes] == ["n1"]
    assert len(seen.holders.absent) == 997
    assert len(shell.requests) < 5


async def test_the_holders_of_a_lock_with_more_entries_than_it_can_have_are_unknown(shell: Shell) -> None:
    shell.put_node("n1")
    rows = [{"nodeID": f"n{number}"} for number in range(1, 1002)]
    shell.put_daemonset(annotations={KEY: json.dumps({"nodeID": "n1", "maxOwners": 9, "locks": rows})})
    assert isinstance((await add(shell, Evidence.HOLDERS)).holders, Unknown)
    assert len(shell.requests) < 5


async def test_the_holders_of_an_unreadable_lock_are_unknown(shell: Shell) -> None:
    shell.put_node("n1")
    shell.put_daemonset(annotations={KEY: "garbage"})
    assert isinstance((await add(shell, Evidence.HOLDERS)).holders, Unknown)


async def test_the_reboot_label_distinguishes_rebooting_nodes_from_waiting_nodes(shell: Shell) -> None:
    for name, label in (("n1", "in-progress"), ("n2", "failed"), ("n3", "ready"), ("n4", "required")):
        shell.put_node(name, labels={"careen.dev/reboot": label})
    seen = await add(shell, Evidence.PEERS, Evidence.WAITERS)
    assert isinstance(seen.peers, tuple)
    assert isinstance(seen.waiters, tuple)
    assert [node.name for node in seen.peers] == ["n1", "n2"]
    assert [node.name for node in seen.waiters] == ["n3", "n4"]


async def test_the_agent_reads_the_lock_and_then_all_nodes_with_one_list(shell: Shell) -> None:
    for name, label in (("n1", "in-progress"), ("n2", "failed"), ("n3", "ready"), ("n4", "required")):
        shell.put_node(name, labels={keys.REBOOT_LABEL: label})
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, POLICY)
    seen = await observer.add(seen, {Evidence.LOCK, Evidence.PEERS, Evidence.FLEET}, POLICY)
    assert isinstance(seen.peers, tuple)
    assert [node.name for node in seen.peers] == ["n1", "n2"]
    assert shell.requests[-2:] == [LOCK, "GET /api/v1/nodes"]
    assert shell.requests.count("GET /api/v1/nodes") == 1


async def test_the_read_time_of_a_list_of_nodes_is_the_time_of_the_request(shell: Shell) -> None:
    shell.put_node("n1")
    shell.wire.after = lambda _: setattr(shell.clock, "seconds", shell.clock.seconds + 7)
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, POLICY)
    asked_at = shell.host.uptime()
    seen = await observer.add(seen, [Evidence.FLEET], POLICY)
    assert isinstance(seen.fleet, Fleet)
    assert seen.fleet.read_at_uptime == asked_at
    assert seen.uptime == asked_at + 7, "the gates compute the age of the list: `uptime` minus `read_at_uptime`"


async def test_eviction_dry_runs_cover_exactly_the_pods_that_the_drain_would_evict(shell: Shell) -> None:
    shell.put_node("n1")
    shell.put_pod("free", metadata={"uid": "free"})
    shell.put_pod("held", metadata={"uid": "held", "labels": {"app": "db"}})
    shell.put_pod(
        "daemon",
        metadata={
            "uid": "daemon",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
            ],
        },
    )
    shell.put_pod("done", metadata={"uid": "done"}, status={"phase": "Succeeded"})
    shell.server.seed(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb", "namespace": "shop", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        }
    )
    seen = await add(shell, Evidence.EVICTABILITY)
    assert isinstance(seen.evictability, dict)
    assert {uid: answer.answer for uid, answer in seen.evictability.items()} == {
        "free": Evictable.ALLOWED,
        "held": Evictable.BUDGET,
    }
    assert shell.server.get("pods", "free", "shop") is not None


async def test_eviction_dry_runs_stop_after_a_minute_and_the_remaining_results_are_unknown(shell: Shell) -> None:
    shell.put_node("n1")
    names = [f"pod-{number:03}" for number in range(110)]
    for name in names:
        shell.put_pod(name, metadata={"uid": name})

    def slowly(request: Request) -> None:
        shell.clock.seconds += 8.0 if request.path.endswith("/eviction") else 0.0

    shell.wire.before = slowly
    began = shell.clock.seconds
    seen = await add(shell, Evidence.EVICTABILITY)
    assert shell.clock.seconds - began < DRY_RUNS_SECONDS + 4 * 8.0, "requests that have begun are completed"
    assert isinstance(seen.evictability, dict)
    answers = [seen.evictability[name].answer for name in names]
    tried = answers.count(Evictable.ALLOWED)
    assert 0 < tried < 20
    assert answers == [Evictable.ALLOWED] * tried + [Evictable.UNKNOWN] * (110 - tried)
    assert "because earlier dry runs took longer than 60 s" in seen.evictability["pod-109"].detail


async def test_the_agent_lists_no_pods_of_the_node_if_the_node_records_their_owners(shell: Shell) -> None:
    from careen.core.facts.progress import OwnerHealth

    for name in ("web", "old"):
        shell.server.seed(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": name, "namespace": "shop"},
                "spec": {"replicas": 2},
                "status": {"readyReplicas": 2},
            }
        )
    shell.put_pod(
        "a",
        metadata={
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
            ]
        },
    )
    shell.put_node("n1")
    seen = await add(shell, Evidence.OWNERS)
    assert isinstance(seen.owners, tuple)
    assert [owner.name for owner in seen.owners] == ["web"]
    uid = "uid-replicasets-shop-old"
    recorded = OwnerHealth(kind="ReplicaSet", namespace="shop", name="old", uid=uid, generation=1, replicas=2, ready=2)
    put_in_phase(shell, Phase.SETTLING, owners=(recorded,))
    seen = await add(shell, Evidence.OWNERS)
    assert isinstance(seen.owners, tuple)
    assert [owner.name for owner in seen.owners] == ["old"]
    assert isinstance(seen.pods, NotAsked), "the Node's annotation names the owners, so the pods are not read"


async def test_the_age_of_the_workloads_health_is_that_of_its_last_read(shell: Shell) -> None:
    shell.put_node("n1")
    observer = shell.observer()
    seen = await observer.begin(Memory(), Phase.IDLE, POLICY)
    assert seen.owners_at is None
    seen = await observer.add(seen, [Evidence.OWNERS], POLICY)
    assert seen.owners_at == seen.uptime
    shell.clock.seconds += 9
    later = await observer.add(seen, [Evidence.PODS], POLICY)
    assert (later.uptime, later.owners_at) == (seen.uptime + 9.0, seen.uptime)


async def test_the_agent_of_a_waiting_node_reads_only_the_owners_of_pods_that_no_scheduler_placed(shell: Shell) -> None:
    """The pod `bound` was created with `spec.nodeName`, so its owner may bind each replacement to the same node. A
    scheduler placed the pod `placed`. In the phase Claiming, the agent reads the owners of both pods."""
    for name, field in (("placed", "f:containers"), ("bound", "f:nodeName")):
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"replicas": 1},
        }
        shell.server.seed(owner)
        shell.put_pod(
            name,
            metadata={
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
                ],
                "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:spec": {field: {}}}}],
            },
        )
    put_in_phase(shell, Phase.WAITING)
    seen = await add(shell, Evidence.OWNERS)
    assert isinstance(seen.owners, tuple)
    assert [owner.name for owner in seen.owners] == ["bound"]
    put_in_phase(shell, Phase.CLAIMING)
    seen = await add(shell, Evidence.OWNERS)
    assert isinstance(seen.owners, tuple)
    assert [owner.name for owner in seen.owners] == ["bound", "placed"]


async def test_alerts_are_read_from_the_configured_source(shell: Shell) -> None:
    shell.put_node("n1")
    assert (await add(shell, Evidence.ALERTS)).alerts == ()
    shell.alerts = FakeAlerts(answer=(Alert(name="Slow"),))
    assert (await add(shell, Evidence.ALERTS)).alerts == (Alert(name="Slow"),)
    shell.alerts = FakeAlerts(answer=Unknown("down"))
    assert (await add(shell, Evidence.ALERTS)).alerts == Unknown("down")


async def test_the_forecast_is_made_for_the_agents_node(shell: Shell) -> None:
    shell.put_node("n1")
    seen = await add(shell, Evidence.FORECAST)
    assert seen.forecast == shell.forecaster.answer
    assert shell.forecaster.asked == ["n1"]


@pytest.mark.parametrize("evidence", Evidence)
async def test_the_agent_can_read_every_kind_of_fact(shell: Shell, evidence: Evidence) -> None:
    shell.put_node("n1")
    shell.put_pod("a")
    seen = await add(shell, evidence)
    assert not isinstance(getattr(seen, evidence.value.replace("-", "_")), NotAsked | Unknown)


async def test_only_a_control_plane_node_checks_the_readiness_of_the_api_server(shell: Shell) -> None:
    shell.put_node("n1")
    assert (await add(shell, Evidence.READYZ)).readyz == ()
    assert not [request for request in shell.requests if "readyz" in str(request)]
    shell.put_node("n1", labels={"node-role.kubernetes.io/control-plane": ""})
    await add(shell, Evidence.READYZ)
    assert [request for request in shell.requests if "readyz" in str(request)]


async def test_the_evidence_has_what_expressions_of_people_say_of_alerts_and_samples(shell: Shell) -> None:
    """The gates, which the agent's loop asks, need not ask the expressions."""
    shell.put_node("n1")
    shell.alerts = FakeAlerts(answer=(Alert(name="Watchdog"), Alert(name="DiskFull")))
    samples = tuple(
        Sample(value=1.0, age_seconds=1.0, evaluated_at=0.0, labels={"instance": instance})
        for instance in ("n1:9100", "n2:9100")
    )
    matcher = Matcher(label="instance", value="n1:.*", pattern=GoRegexp("n1:.*"))
    query = HealthQuery(name="up", query="up", comparison="==", bound=1.0, fresh_seconds=60.0, matchers=(matcher,))
    policy = Policy(node_name="n1", alerts=AlertPolicy(filter_regexp=GoRegexp("^Watch")), health_queries=(query,))
    observer = Observer(replace(shell.senses, metrics=lambda: FakeMetrics(samples)))
    seen = await observer.add(
        await observer.begin(Memory(), Phase.IDLE, policy), {Evidence.ALERTS, Evidence.QUERIES}, policy
    )
    assert isinstance(seen.alerts, tuple)
    assert isinstance(seen.queries, dict)
    assert [alert.is_matched for alert in seen.alerts] == [True, False]
    assert [sample.is_selected for sample in seen.queries["up"]] == [True, False]  # type: ignore[union-attr]
