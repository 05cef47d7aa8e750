"""The simulated roll-outs that `test_every_call.py` plays again and again, each time with a fault at another request.
In one roll-out, the agents go through their whole start. In another, workloads and a volume go while their node is
away. In a third, some responses are always lost. In a fourth, turns fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from careen.cluster.wire.transport import Request
from careen.core import decide
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Budget, BudgetKind
from careen.core.situation import Situation
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import Agents, Fault, Plan
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.whole_agents import SETTINGS, WholeAgents, on_virtual_hosts
from tests.careen.chaos.fleet.workloads import NAMESPACE, App
from tests.careen.chaos.fleet.world import Shape, World, nothing_goes_wrong

LOST_ANSWERS = (
    lambda request: request.method == "PATCH" and b'"unschedulable":true' in (request.body or b""),
    lambda request: request.method == "PATCH" and "/daemonsets/" in request.path,
)
"""Two kinds of requests, each given by a function that recognises it: the cordon, and the write of a claim into the
lock. The response to the first request of each kind is lost."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """One simulated roll-out: its fleet, its agents, and the events that happen each time it is played."""

    shape: Shape
    agents: type[Agents] = Agents
    asleep_seconds: float = 0.0
    """How long the agents sleep before their hosts need a reboot."""
    prepare: Callable[[World], None] = lambda _: None
    troubles: Callable[[World], Plan] = lambda _: nothing_goes_wrong
    """The faults of every run. A test may add one more fault."""
    surroundings: Callable[[list[World]], AbstractContextManager[None]] = lambda _: nullcontext()
    tolerated: tuple[str, ...] = field(default=())
    """The names of the rules that are not checked in this story, because its own events break them."""


def played(story: Story, plan: Plan = nothing_goes_wrong) -> World:
    """Play the simulated roll-out from the start of the agents to the end. The function `plan` returns the fault of
    each request. Return the simulated cluster after the roll-out."""
    worlds: list[World] = []
    with story.surroundings(worlds):
        return run_virtually(_roll_out(story, plan, worlds))


async def _roll_out(story: Story, plan: Plan, worlds: list[World]) -> World:
    def prepare(world: World) -> None:
        worlds.append(world)
        troubles.append(story.troubles(world))
        story.prepare(world)

    def both(number: int, node: str, request: Request) -> Fault | None:
        own = troubles[0](number, node, request)  # always called: it counts what it has seen
        return plan(number, node, request) or own

    troubles: list[Plan] = []
    world = World(story.shape, plan=both, agents=story.agents, prepare=prepare)
    await asyncio.sleep(story.asleep_seconds)
    await world.all_need_a_reboot()
    await world.until_home(900.0)
    world.stop()
    return world


# A whole agent ---------------------------------------------------------------------------------------------------


def _add_settings_and_workloads(world: World) -> None:
    """Create the settings, the agents' own pods, and workloads that make an agent send every kind of request."""
    world.server.page_size = 3
    text = SETTINGS.format(concurrency=world.shape.concurrency)
    world.server.put(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": text},
        }
    )
    put_agents_pods(world)
    world.fleet.workloads.add_apps([App(name="cache", replicas=1), App(name="mayfly", replicas=1)], ["n1"])
    _give_device(world, "cache")
    world.fleet.add_job("n1", "completes")


def _give_device(world: World, app: str) -> None:
    """Let one pod of this application use a ResourceClaim, so that the agents also list devices for their forecasts."""
    pod = next(pod for pod in world.server.all("pods") if pod["metadata"]["labels"]["app"] == app)
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    world.server.put({**pod, "spec": {**pod["spec"], "resourceClaims": claims}})


def agents_pod(node: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "careen", "uid": "uid-careen", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"careen-{node}",
            "namespace": "careen",
            "labels": {"app": "careen"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "careen:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


# kured's roles ---------------------------------------------------------------------------------------------------


class UnderKuredsRoles(Agents):
    """Agents that have only kured's rights. kured may not list Nodes or DaemonSets, and may not patch a DaemonSet. With
    kured's rights, the agents read the objects one by one and write the lock with `update`."""

    def withheld(self, request: Request) -> str:
        is_withheld = (request.method, request.path.rpartition("/")[2]) in _WITHHELD or (
            request.method == "PATCH" and "/daemonsets/" in request.path
        )
        return "kured's roles do not allow this request" if is_withheld else ""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.may_follow = False


_WITHHELD = {("GET", "nodes"), ("GET", "daemonsets")}


def put_agents_pods(world: World) -> None:
    for name in world.shape.names:
        world.server.put(agents_pod(name))


def _pod_goes_before_its_eviction(world: World) -> Plan:
    """Delete one pod as another client, after the agent has listed it and before the agent evicts it."""
    gone: list[str] = []

    def plan(_number: int, _node: str, request: Request) -> None:
        if not gone and "/mayfly-" in request.path and request.path.endswith("/eviction") and not request.query:
            gone.append(request.path.split("/")[-2])
            world.server.remove("pods", gone[0], actor="person", namespace="shop")

    return plan


# What goes while a node is away -----------------------------------------------------------------------------------


def _add_volumes_and_daemon(world: World) -> None:
    """Give n1 a Deployment that is rolled out during the drain, a DaemonSet that a person deletes while n1 reboots, and
    two attached volumes. A DaemonSet's pod, which stays on n1, uses one of the volumes."""
    workloads, server = world.fleet.workloads, world.server
    _add_revision(world, "mayfly-old", "n1")
    workloads.daemons.append(_SHORT_LIVED)
    workloads.place_daemons("n1")
    world.fleet.on_boot.append(lambda host: _delete_daemon(world) if host.name == "n1" else None)
    net = server.get("pods", "net-n1", NAMESPACE)
    assert net is not None
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "net"}}
    server.put({**net, "spec": {**net["spec"], "volumes": [claim]}})
    server.put(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "net", "namespace": NAMESPACE},
            "spec": {"volumeName": "pv-net"},
        }
    )
    for name in ("pv-net", "pv-db"):
        server.put(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": f"of-{name}"},
                "spec": {"attacher": "disks", "nodeName": "n1", "source": {"persistentVolumeName": name}},
            }
        )
    _list_volumes(world, "pv-net", "pv-db")


_SHORT_LIVED = "short-lived"


def _add_revision(world: World, name: str, node: str) -> None:
    """Add a ReplicaSet of the Deployment "mayfly", with a pod on this node."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mayfly", "uid": "uid-mayfly", "controller": True}
    world.fleet.workloads.add_apps([App(name=name, replicas=1)], [node])
    _change_revision(world, name, lambda old: {**old, "metadata": {**old["metadata"], "ownerReferences": [owner]}})


def _change_revision(world: World, name: str, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    world.server.change("replicasets", name, edit, actor="system:controller", namespace=NAMESPACE)


def _roll_out_mayfly(world: World) -> None:
    """Replace the first ReplicaSet of the Deployment by another, with a ready pod on n2."""
    if world.fleet.workloads.apps.pop("mayfly-old", None) is not None:
        _change_revision(world, "mayfly-old", lambda old: {**old, "spec": {**old["spec"], "replicas": 0}})
        _add_revision(world, "mayfly-new", "n2")


def _list_volumes(world: World, *names: str) -> None:
    volumes = [{"name": f"kubernetes.io/csi/disks^{name}", "devicePath": ""} for name in names]
    world.server.change(
        "nodes",
        "n1",
        lambda old: {**old, "status": {**old["status"], "volumesAttached": volumes}},
        actor="system:controller",
        subresource="status",
    )


def _delete_daemon(world: World) -> None:
    if _SHORT_LIVED in world.fleet.workloads.daemons:
        world.fleet.workloads.daemons.remove(_SHORT_LIVED)
        world.server.remove("daemonsets", _SHORT_LIVED, actor="person", namespace=NAMESPACE)
        for name in world.shape.names:
            world.server.remove("pods", f"{_SHORT_LIVED}-{name}", actor="person", namespace=NAMESPACE)


def _workload_and_volume_go(world: World) -> Plan:
    """Roll out a Deployment before the agent evicts its pod. Detach a volume some seconds after the agent has asked for
    it: first the Node no longer lists it, then its VolumeAttachment goes."""
    asked: list[str] = []

    def plan(_number: int, _node: str, request: Request) -> None:
        if "/mayfly-old-" in request.path and request.path.endswith("/eviction") and not request.query:
            _roll_out_mayfly(world)
        if request.path.endswith("/volumeattachments") and not asked:
            asked.append(request.path)
            world.fleet.later(2.0, lambda: _list_volumes(world, "pv-net"))
            world.fleet.later(
                5.0, lambda: world.server.remove("volumeattachments", "of-pv-db", actor="system:controller")
            )

    return plan


# Troubles --------------------------------------------------------------------------------------------------------


def _answers_are_lost(_world: World) -> Plan:
    left = list(LOST_ANSWERS)

    def plan(_number: int, _node: str, request: Request) -> Fault | None:
        for each in left:
            if each(request):
                left.remove(each)
                return Fault.LOST_AFTER
        return None

    return plan


def _disturb_sleep(world: World) -> None:
    """End every watch, write a Node as others do, and write the ConfigMap."""
    world.at(60.0, world.agents.break_connections)
    world.at(120.0, lambda: people.touch(world, "n1"))
    world.at(380.0, world.touch_config_map)


BROKEN_SECONDS = 3.0


@contextmanager
def _turns_break(worlds: list[World]) -> Iterator[None]:
    """Make the rounds of the loop of n1's agent fail in the first three seconds of the drain."""
    step, since = decide.STEPS[Phase.DRAINING], []  # type: ignore[var-annotated]

    def breaks(situation: Situation) -> Any:
        since.append(worlds[0].now)
        if situation.node.name == "n1" and since[-1] - since[0] < BROKEN_SECONDS:
            raise KeyError("broken")
        return step(situation)

    decide.STEPS[Phase.DRAINING] = breaks
    try:
        yield
    finally:
        decide.STEPS[Phase.DRAINING] = step


STORIES = {
    "one alone": Story(shape=Shape(nodes=1)),
    "one after another": Story(shape=Shape(nodes=2)),
    "two at once of three": Story(shape=Shape(nodes=3, concurrency=2, replicas_per_node=2)),
    "two zones, one each": Story(
        shape=Shape(nodes=4, zones=2, concurrency=2, zone_limit=1, budgets=(Budget(kind=BudgetKind.ZONE, limit=1),))
    ),
    "a control plane of three": Story(shape=Shape(nodes=3, control_planes=3, concurrency=3)),
    "the whole agent": Story(
        shape=Shape(nodes=2),
        agents=WholeAgents,
        prepare=_add_settings_and_workloads,
        troubles=_pod_goes_before_its_eviction,
        surroundings=on_virtual_hosts,
    ),
    "under kured's roles": Story(
        shape=Shape(nodes=3), agents=UnderKuredsRoles, asleep_seconds=400.0, prepare=put_agents_pods
    ),
    "workloads and a volume go": Story(
        shape=Shape(nodes=2), prepare=_add_volumes_and_daemon, troubles=_workload_and_volume_go
    ),
    "two answers are lost": Story(shape=Shape(nodes=2), troubles=_answers_are_lost),
    "asleep before the need": Story(shape=Shape(nodes=2), asleep_seconds=700.0, prepare=_disturb_sleep),
    "turns break for a while": Story(shape=Shape(nodes=2), surroundings=_turns_break, tolerated=("broken-turns",)),
}
