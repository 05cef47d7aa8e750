"""Operators whose budgets and webhooks refuse every eviction until they notice the drain: the nodes reboot. An operator
that never opens its budget costs an undone drain and a pause, and the workloads of careen's own understanding stay
protected before the cordon."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import pytest

from careen.cluster.wire.transport import Request, Response
from careen.core.drain.slow_pods import IDLE_LIMIT_SECONDS
from careen.core.facts.policy import DrainPolicy, ForecastPolicy
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.foreign_pods import owner, put_pod
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.workloads import NAMESPACE
from tests.careen.chaos.fleet.world import Shape, World

LONGHORN, CLUSTER, VMI, SET = "InstanceManager", "Cluster", "VirtualMachineInstance", "StatefulSet"


def api_of(kind: str) -> str:
    return "apps/v1" if kind in {SET, "ReplicaSet"} else "operator.example/v1"


def put_budget(
    world: World, name: str, selector: dict[str, Any], of: dict[str, Any] | None = None, expected: int = 1
) -> None:
    world.server.put(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "generation": 1,
                **({"ownerReferences": [of]} if of else {}),
            },
            "spec": {"selector": selector, "minAvailable": expected},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": expected,
                "desiredHealthy": expected,
                "expectedPods": expected,
            },
        },
        actor="operator",
    )


def is_cordoned(world: World, node: str) -> bool:
    return bool((world.server.get("nodes", node) or {}).get("spec", {}).get("unschedulable"))


def others_on(world: World, node: str) -> list[str]:
    apps = world.fleet.workloads.apps
    return [
        pod["metadata"]["name"]
        for pod in world.server.all("pods")
        if pod["spec"].get("nodeName") == node and pod["metadata"]["labels"].get("app") in apps
    ]


@dataclass
class StorageOperator:
    """One pod on each node behind a budget of zero, which the operator removes when `opens` says so."""

    world: World
    opens: Callable[[World, str], bool]
    kind: str = LONGHORN
    is_down: bool = False
    tried: dict[str, int] = field(default_factory=dict)

    def install(self) -> None:
        for node in self.world.shape.names:
            self._put(node)

    def _put(self, node: str) -> None:
        labels = {"app": f"im-{node}", "longhorn.io/component": "instance-manager"}
        put_pod(self.world, f"im-{node}", node, owner(self.kind, f"im-{node}", api_of(self.kind)), labels=labels)
        put_budget(self.world, f"im-{node}", {"matchLabels": {"app": f"im-{node}"}})

    async def run(self) -> None:
        while True:
            await asyncio.sleep(3.0)
            for node in () if self.is_down else self.world.shape.names:
                budget = self.world.server.get("poddisruptionbudgets", f"im-{node}", NAMESPACE)
                if is_cordoned(self.world, node) and self.opens(self.world, node):
                    if budget:
                        self.world.server.remove("poddisruptionbudgets", f"im-{node}", actor="o", namespace=NAMESPACE)
                elif not is_cordoned(self.world, node) and self.world.fleet.hosts[node].is_up:
                    if not self.world.server.get("pods", f"im-{node}", NAMESPACE):
                        self._put(node)
                    elif not budget:
                        put_budget(self.world, f"im-{node}", {"matchLabels": {"app": f"im-{node}"}})


def when_cordoned(_world: World, _node: str) -> bool:
    return True


def when_emptied(world: World, node: str) -> bool:
    return not others_on(world, node)


def never(_world: World, _node: str) -> bool:
    return False


class Database:
    """A primary behind a budget of zero that selects the primary's role, and a replica on another node. The primary
    moves when its node is cordoned."""

    def __init__(self, world: World, *, is_owned: bool) -> None:
        self.world = world
        kind = CLUSTER if is_owned else SET
        if not is_owned:
            world.server.put(
                {
                    "apiVersion": "apps/v1",
                    "kind": SET,
                    "metadata": {"name": "pg", "namespace": NAMESPACE, "uid": "uid-pg", "generation": 1},
                    "spec": {
                        "replicas": 2,
                        "selector": {"matchLabels": {"cluster": "pg"}},
                        "template": {"metadata": {"labels": {"cluster": "pg"}}, "spec": {}},
                    },
                    "status": {"replicas": 2, "readyReplicas": 2},
                }
            )
        self.of = owner(kind, "pg", api_of(kind))
        for index, node in enumerate(world.shape.names):
            self._put(index, node, "master" if index == 0 else "replica")
        put_budget(world, "pg", {"matchExpressions": [{"key": "role", "operator": "In", "values": ["master"]}]})

    def _put(self, index: int, node: str, role: str) -> None:
        labels = {"app": f"pg-{index}", "cluster": "pg", "role": role}
        put_pod(self.world, f"pg-{index}", node, self.of, labels=labels)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            pods = [pod for pod in self.world.server.all("pods") if pod["metadata"]["labels"].get("cluster") == "pg"]
            for index, node in enumerate(self.world.shape.names):
                is_here = any(pod["metadata"]["name"] == f"pg-{index}" for pod in pods)
                if not is_here and not is_cordoned(self.world, node) and self.world.fleet.hosts[node].is_up:
                    self._put(index, node, "replica")
            for pod in pods:
                labels, node = pod["metadata"]["labels"], pod["spec"]["nodeName"]
                others = [each for each in pods if not is_cordoned(self.world, each["spec"]["nodeName"])]
                if labels["role"] == "master" and is_cordoned(self.world, node) and others:
                    self._label(pod, "replica")
                    self._label(others[0], "master")

    def _label(self, pod: dict[str, Any], role: str) -> None:
        def edit(old: dict[str, Any]) -> dict[str, Any]:
            return {**old, "metadata": {**old["metadata"], "labels": {**old["metadata"]["labels"], "role": role}}}

        self.world.server.change("pods", pod["metadata"]["name"], edit, actor="patroni", namespace=NAMESPACE)


Story = Callable[[World], Any]


def play(
    prepare: Callable[[World], Any], story: Story, *, nodes: int = 2, seconds: float = 900.0, **settings: Any
) -> World:
    """Play a roll-out with the operator that `prepare` installs, and with the real forecast."""

    async def told() -> World:
        made: list[Any] = []
        world = World(Shape(nodes=nodes, has_real_forecast=True), prepare=lambda each: made.append(prepare(each)))
        people.change_settings(world, **settings)
        running = [asyncio.ensure_future(each.run()) for each in made if each is not None]
        await world.all_need_a_reboot()
        await story(world)
        await asyncio.sleep(max(0.0, seconds - world.now))
        world.stop()
        for each in running:
            each.cancel()
        return world

    return run_virtually(told())


async def nothing(_world: World) -> None:
    return None


def storage(opens: Callable[[World, str], bool], **changes: Any) -> Callable[[World], StorageOperator]:
    def prepare(world: World) -> StorageOperator:
        operator = StorageOperator(world, opens, **changes)
        operator.install()
        world.operator = operator  # type: ignore[attr-defined]
        return operator

    return prepare


def booted(world: World) -> list[str]:
    return sorted(entry.host for entry in world.fleet.log if entry.what == "booted")


def annotation(world: World, node: str, key: str) -> str:
    return ((world.server.get("nodes", node) or {})["metadata"].get("annotations") or {}).get(f"careen.dev/{key}", "")


def evictions(world: World) -> int:
    """How many evictions the API server carried out."""
    return sum("POST eviction 201" in line and "dryRun" not in line for line in world.agents.trace)


def known(world: World, node: str) -> dict[str, Any]:
    text = annotation(world, node, "drain-memory")
    return json.loads(text) if text else {}


@pytest.mark.parametrize("forecast", [ForecastPolicy.REFUSE, ForecastPolicy.OFF])
@pytest.mark.parametrize(("opens", "seen"), [(when_cordoned, "cordon"), (when_emptied, "emptied")])
def test_a_budget_that_opens_only_during_the_drain_lets_every_node_reboot(
    opens: Callable[[World, str], bool], seen: str, forecast: ForecastPolicy
) -> None:
    world = play(storage(opens), nothing, forecast=forecast)
    assert booted(world) == ["n1", "n2"]
    assert not (broken := world.verdict()), world.report(broken)
    assert known(world, "n1")["known"][f"{LONGHORN} {NAMESPACE}/im-n1"]["opens"] == seen
    assert "now" not in known(world, "n1")


def test_once_a_node_has_seen_that_it_must_be_empty_its_other_pods_do_not_wait() -> None:
    async def again(world: World) -> None:
        while len(booted(world)) < 1:
            await asyncio.sleep(1.0)
        await asyncio.sleep(60.0)
        began.append(world.now)
        world.fleet.hosts["n1"].needs_reboot()
        while len(booted(world)) < 2 and world.now < 600.0:
            await asyncio.sleep(1.0)
        began.append(world.now)

    began: list[float] = []
    play(storage(when_emptied), again, nodes=1, seconds=600.0)
    assert began[1] - began[0] < 55.0


def test_an_operator_that_is_down_costs_one_drain_then_pauses_and_tries_of_the_slow_pods_alone() -> None:
    moved: list[int] = []

    async def watch(world: World) -> None:
        world.operator.is_down = True  # type: ignore[attr-defined]
        for hours in (1, 3):
            await asyncio.sleep(hours * 3600.0 - world.now)
            moved.append(evictions(world))

    world = play(storage(never), watch, nodes=1, seconds=3 * 3600.0 + 10.0)
    assert booted(world) == []
    assert moved[0] == moved[1] > 0, "only the first drain may move the other pods"
    assert known(world, "n1")["known"][f"{LONGHORN} {NAMESPACE}/im-n1"]["undone"] == 3
    assert "never (seen): 3 drains were undone" in annotation(world, "n1", "reason")
    assert "the next try is at 2026-03-05T" in annotation(world, "n1", "reason")
    assert "careen retry n1" in annotation(world, "n1", "refusals")
    assert not is_cordoned(world, "n1")


async def last_replicas(world: World) -> None:
    """A storage pod on each node. Its operator lets it go once its node has been cordoned for ten seconds, but not
    while another node is cordoned or down: that node may have the only other replica."""
    nodes, before, since = world.shape.names, [""], world.now
    while True:
        away = [node for node in nodes if is_cordoned(world, node) or not world.fleet.hosts[node].is_up]
        before, since = (before, since) if away == before else (away, world.now)
        for node in nodes:
            name, of = f"im-{node}", owner(LONGHORN, f"im-{node}")
            if world.server.get("pods", name, NAMESPACE) is None and node not in away:
                put_pod(world, name, node, of)
            has_budget = world.server.get("poddisruptionbudgets", name, NAMESPACE) is not None
            if away == [node] and has_budget and world.now - since >= 10.0:
                world.server.remove("poddisruptionbudgets", name, actor="operator", namespace=NAMESPACE)
            elif away != [node] and not has_budget:
                put_budget(world, name, {"matchLabels": {"app": name}})
        await asyncio.sleep(1)


def test_of_two_drains_that_wait_for_each_other_the_younger_claim_gives_way() -> None:
    async def story() -> None:
        world = World(Shape(nodes=3, concurrency=2))
        people.change_settings(world, failure_backoff_seconds=900, failure_backoff_limit_seconds=3600)
        task = asyncio.ensure_future(last_replicas(world))
        await world.all_need_a_reboot()
        await asyncio.sleep(300)
        assert sum(is_cordoned(world, node) for node in world.shape.names) == 2
        await world.until_home(3600)
        assert sorted(event.host for event in world.fleet.log if event.what == "booted") == ["n1", "n2", "n3"]
        asked = min(event.at for event in world.fleet.log if event.what == "asked")
        assert asked < IDLE_LIMIT_SECONDS, "both drains were undone"
        assert world.verdict() == [], world.report(world.verdict())
        task.cancel()
        world.stop()

    run_virtually(story())


def test_a_retry_of_a_person_tries_at_once_and_moves_every_pod_again() -> None:
    async def back(world: World) -> None:
        world.operator.is_down = True  # type: ignore[attr-defined]
        await asyncio.sleep(3 * 3600.0)
        assert "never (seen)" in annotation(world, "n1", "reason")
        world.operator.is_down = False  # type: ignore[attr-defined]
        people.retry(world, "n1")

    world = play(storage(when_emptied), back, nodes=1, seconds=3.3 * 3600.0)
    assert booted(world) == ["n1"]


def test_a_node_undoes_at_most_three_drains_a_day_although_its_budget_changes_each_time() -> None:
    async def churn(world: World) -> None:
        for _ in range(24):
            await asyncio.sleep(600.0)
            world.server.remove("poddisruptionbudgets", "im-n1", actor="tenant", namespace=NAMESPACE)
            put_budget(world, "im-n1", {"matchLabels": {"app": "im-n1"}})

    world = play(storage(never), churn, nodes=1, seconds=4 * 3600.0)
    assert booted(world) == []
    cordons = [each for each in world.server.store.journal if "slow-pods" in repr(each)]
    assert len(known(world, "n1")["undone"]) == 3, len(cordons)
    assert "the next try is at" in annotation(world, "n1", "reason")


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_primary_that_moves_when_its_node_is_cordoned_is_drained(is_owned: bool) -> None:
    """Zalando's and CloudNativePG's primaries: the budget selects a label that the template does not set."""

    world = play(partial(Database, is_owned=is_owned), nothing, seconds=1200.0)
    assert booted(world) == ["n1", "n2"]
    assert not (broken := world.verdict()), world.report(broken)


def test_a_virtual_machine_whose_webhook_begins_its_migration_at_the_first_real_eviction_is_drained() -> None:
    class Kubevirt:
        def __init__(self, world: World) -> None:
            self.world, self.asked = world, list[float]()
            put_pod(world, "virt-launcher-vm", "n1", owner(VMI, "vm"))
            put_budget(world, "vm", {"matchLabels": {"app": "vm"}}, owner(VMI, "vm"))
            real = world.server.answer

            def answer(request: Request, actor: str) -> Response:
                if not request.path.endswith("pods/virt-launcher-vm/eviction"):
                    return real(request, actor)
                if "dryRun" not in request.query and not self.asked:
                    self.asked.append(world.now)
                    world.at(300.0, self._migrated)
                text = (
                    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: '
                    'Eviction triggered evacuation of VMI "shop/vm"'
                )
                return world.server.refusal(429, text)

            world.server.answer = answer  # type: ignore[method-assign]

        def _migrated(self) -> None:
            self.world.server.remove("pods", "virt-launcher-vm", actor="virt-handler", namespace=NAMESPACE)
            put_pod(self.world, "virt-launcher-vm-2", "n2", owner(VMI, "vm"))

        async def run(self) -> None:
            await asyncio.sleep(0.0)

    world = play(Kubevirt, nothing, nodes=2, seconds=700.0)
    assert "n1" in booted(world)
    assert known(world, "n1")["known"][f"{VMI} {NAMESPACE}/vm"]["opens"] == "attempt"


@pytest.mark.parametrize(
    ("selector", "of"),
    [
        ({"matchLabels": {"app": "web"}}, None),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}, None),
        ({"matchLabels": {"app": "web"}}, {**owner("Application", "helm"), "controller": False}),
    ],
)
def test_a_plain_workload_whose_budget_allows_nothing_is_refused_before_the_cordon(
    selector: dict[str, Any], of: dict[str, Any] | None
) -> None:
    def prepare(world: World) -> None:
        put_budget(world, "web", selector, of, expected=2)

    remedies: list[str] = []

    async def watch(world: World) -> None:
        """The reason changes while other nodes of the line are asked."""
        for _ in range(240):
            await asyncio.sleep(1.0)
            if "can never be evicted" in annotation(world, "n1", "reason"):
                remedies.append(annotation(world, "n1", "refusals"))

    world = play(prepare, watch, seconds=300.0)
    assert booted(world) == []
    assert not any(is_cordoned(world, node) for node in world.shape.names)
    assert evictions(world) == 0
    assert remedies
    assert all("minAvailable" in each for each in remedies)


def test_a_bare_pod_whose_budget_allows_nothing_is_refused_before_the_cordon() -> None:
    def prepare(world: World) -> None:
        put_pod(world, "bare", "n1", None)
        put_budget(world, "bare", {"matchLabels": {"app": "bare"}})

    world = play(prepare, nothing, seconds=300.0)
    assert booted(world) == ["n2"]
    assert "shop/bare" in annotation(world, "n1", "reason")


def test_a_webhook_that_denies_a_plain_workload_costs_one_drain_and_then_a_day() -> None:
    def prepare(world: World) -> None:
        real = world.server.answer

        def answer(request: Request, actor: str) -> Response:
            if request.path.endswith("/eviction") and "pods/web-" in request.path:
                return world.server.refusal(403, 'admission webhook "policy.example" denied the request: not now')
            return real(request, actor)

        world.server.answer = answer  # type: ignore[method-assign]

    world = play(prepare, nothing, nodes=1, seconds=2 * 3600.0)
    assert booted(world) == []
    assert len(known(world, "n1")["undone"]) == 1
    assert "never (seen): an earlier drain was undone" in annotation(world, "n1", "reason")
    assert "change the webhook policy.example" in annotation(world, "n1", "refusals")


def test_an_agent_that_starts_again_in_the_middle_of_the_drain_still_knows_the_slow_pods() -> None:
    async def crash(world: World) -> None:
        while not is_cordoned(world, "n1"):
            await asyncio.sleep(0.5)
        for _ in range(5):
            await asyncio.sleep(300.0)
            people.crash_agent(world, "n1")

    world = play(storage(never), crash, nodes=1, seconds=2 * 3600.0 + 300.0)
    assert len(known(world, "n1")["undone"]) >= 1, "the limit of two hours survives the processes"


def test_a_hold_during_the_drain_undoes_it_at_once_and_counts_no_failure() -> None:
    async def held(world: World) -> None:
        while not is_cordoned(world, "n1"):
            await asyncio.sleep(0.5)
        await asyncio.sleep(300.0)
        people.hold(world, "n1")
        await asyncio.sleep(20.0)
        assert not is_cordoned(world, "n1")
        assert "undone" not in known(world, "n1")
        people.let_go(world, "n1")
        world.operator.opens = when_cordoned  # type: ignore[attr-defined]

    world = play(storage(never), held, nodes=1, seconds=1500.0)
    assert booted(world) == ["n1"]


def test_a_drain_that_a_person_asked_for_waits_for_slow_pods_too() -> None:
    async def keep(world: World) -> None:
        people.annotate(world, "n1", people.REQUEST, "maintenance")

    world = play(storage(when_emptied), keep, nodes=1, seconds=400.0)
    assert annotation(world, "n1", "phase") == "Maintenance"
    assert known(world, "n1")["known"][f"{LONGHORN} {NAMESPACE}/im-n1"]["opens"] == "emptied"


def test_the_drain_timeout_limits_slow_pods_if_it_is_set() -> None:
    world = play(storage(never), nothing, nodes=1, seconds=500.0, drain=DrainPolicy(timeout_seconds=120.0))
    assert annotation(world, "n1", "phase") == "Failed"
    assert len(known(world, "n1")["undone"]) == 1


def test_the_memory_of_one_node_is_small() -> None:
    def prepare(world: World) -> None:
        for index in range(40):
            of = owner(VMI, f"{'vm' * 20}-{index}")
            put_pod(world, f"vm-{index}", "n1", of, labels={"app": f"vm-{index}"})
            put_budget(world, f"vm-{index}", {"matchLabels": {"app": f"vm-{index}"}}, owner(VMI, f"vm-{index}"))

    world = play(prepare, nothing, nodes=1, seconds=2500.0)
    text = annotation(world, "n1", "drain-memory")
    assert 0 < len(text) <= 4096
    assert len(json.loads(text)["known"]) <= 20
    assert len(msgspec.json.decode(text)["undone"]) == 1
