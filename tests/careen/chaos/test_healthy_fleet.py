"""Roll-outs in a healthy fleet with workloads that once stopped the roll-out: Jobs that end, DaemonSet pods that were
never ready, and pods that their owner binds to a node."""

from __future__ import annotations

import json
from typing import Any

from careen.core.facts.policy import BoundPods, DrainPolicy
from drydock.server.kinds.resources import resource_named
from tests.careen.chaos.fleet.foreign_pods import owner, put_pod
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

PODS = resource_named("pods").storage


def comes_again(world: World, of: dict[str, Any], *, is_bound: bool | None) -> list[str]:
    """From now on, recreate each deleted pod of this owner at once on the same node. Return a list to which the name of
    each recreated pod is added."""
    made: list[str] = []

    def look() -> None:
        change = world.server.store.journal[-1]
        if (
            change.after is None
            and change.before is not None
            and change.before.content["metadata"]["labels"]["app"] == of["name"]
        ):
            node = change.before.content["spec"]["nodeName"]
            made.append(f"{of['name']}-{len(made) + 1}")
            world.at(0.0, lambda name=made[-1]: put_pod(world, name, node, of, is_bound=is_bound))

    world.server.store.listen([PODS], look)
    return made


def boots(world: World) -> list[str]:
    return [event.host for event in world.fleet.log if event.what == "booted"]


async def a_job_that_ends() -> World:
    """Play a roll-out that evicts the pod of a Job. The Job then fails and never has a ready pod again."""
    world = World(Shape(nodes=3))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "nightly", "namespace": "shop", "uid": "uid-nightly", "generation": 1},
    }
    world.server.put({**job, "spec": {"parallelism": 1}, "status": {"ready": 1}})
    put_pod(world, "nightly-1", "n1", owner("Job", "nightly", "batch/v1"))

    def look() -> None:
        if world.server.get("pods", "nightly-1", "shop") is None:
            world.server.change(
                "jobs",
                "nightly",
                lambda old: {**old, "status": {"ready": 0, "failed": 1}},
                actor="job-controller",
                namespace="shop",
                subresource="status",
            )

    world.server.store.listen([PODS], look)
    await world.all_need_a_reboot()
    await world.until_home(600.0)
    world.stop()
    return world


def test_a_job_that_fails_after_the_eviction_of_its_pod_does_not_halt_the_roll_out() -> None:
    world = run_virtually(a_job_that_ends())
    assert world.server.get("pods", "nightly-1", "shop") is None
    assert world.verdict() == [], world.report(world.verdict())
    assert sorted(boots(world)) == ["n1", "n2", "n3"]


async def daemon_pods_that_are_never_ready() -> World:
    world = World(Shape(nodes=3))
    for name in world.shape.names:
        put_pod(world, f"broken-{name}", name, owner("DaemonSet", "broken", "apps/v1"), is_ready=False)
    await world.all_need_a_reboot()
    await world.until_home(600.0)
    world.stop()
    return world


def test_a_daemonset_that_was_never_ready_does_not_halt_the_roll_out() -> None:
    world = run_virtually(daemon_pods_that_are_never_ready())
    assert world.verdict() == [], world.report(world.verdict())
    assert sorted(boots(world)) == ["n1", "n2", "n3"]


async def bound_pods(
    *, kind: str, is_bound: bool | None, setting: BoundPods = BoundPods.REFUSE
) -> tuple[World, list[str]]:
    world = World(Shape(nodes=2))
    for name in world.shape.names:
        world.settings[name] = {"drain": DrainPolicy(bound_pods=setting)}
    template = {"spec": {"nodeName": "n1"}}
    world.server.put(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "pinned", "namespace": "shop", "uid": "uid-pinned", "generation": 1},
            "spec": {"replicas": 1, "template": template},
            "status": {"readyReplicas": 1},
        }
    )
    of = owner(kind, "pinned", "apps/v1" if kind == "ReplicaSet" else "operator.example/v1")
    made = comes_again(world, of, is_bound=is_bound)
    put_pod(world, "pinned-0", "n1", of, is_bound=is_bound)
    await world.all_need_a_reboot()
    await world.until_home(400.0)
    world.stop()
    return world, made


def test_a_node_whose_reboot_is_blocked_by_pods_bound_to_it_delays_no_other_node() -> None:
    world, made = run_virtually(bound_pods(kind="ReplicaSet", is_bound=True))
    assert (boots(world), made, world.lock().get("locks", [])) == (["n2"], [], [])
    node = world.server.get("nodes", "n1")
    assert node is not None
    (refusal,) = json.loads(node["metadata"]["annotations"]["careen.dev/refusals"])
    assert (refusal["gate"], refusal["code"]) == ("bound-pods", "bound-pod")
    assert "shop/pinned-0 (ReplicaSet shop/pinned)" in refusal["sentence"]


def test_a_pod_whose_owners_template_sets_the_node_name_blocks_the_reboot() -> None:
    world, made = run_virtually(bound_pods(kind="ReplicaSet", is_bound=None))
    assert (boots(world), made) == (["n2"], [])


def test_pods_bound_to_a_node_are_not_evicted_if_the_settings_let_them_stay() -> None:
    world, made = run_virtually(bound_pods(kind="ReplicaSet", is_bound=True, setting=BoundPods.STAY))
    assert (sorted(boots(world)), made) == (["n1", "n2"], [])
    assert world.verdict(but=("drained",)) == [], world.report(world.verdict())


def test_a_pod_bound_to_its_node_by_a_controller_of_unknown_kind_does_not_block_the_reboot() -> None:
    world, made = run_virtually(bound_pods(kind="Rocket", is_bound=True))
    assert sorted(boots(world)) == ["n1", "n2"]
    assert 1 <= len(made) <= 3, "the agent does not evict a pod that was created more than 2 s after the cordon"
    assert world.verdict(but=("drained",)) == [], world.report(world.verdict())


def test_a_pod_recreated_on_the_same_node_again_and_again_does_not_block_the_roll_out() -> None:
    world, made = run_virtually(bound_pods(kind="Rocket", is_bound=None))
    assert sorted(boots(world)) == ["n1", "n2"]
    assert 6 <= len(made) <= 8, (
        "the agent evicts six pods that were created more than 2 s after the cordon, and at most two older pods"
    )
    assert world.verdict(but=("drained",)) == [], world.report(world.verdict())
