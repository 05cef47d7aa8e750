"""Rogues: agents that misbehave on purpose, one for each rule that an agent of the demo can break. `careen demo --break
RULE` runs one of them, and must then exit with 1.

A rogue uses an agent's name, and accesses hosts as an agent would. It breaks its rule and does little else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from drydock.controllers.ownership import PODS
from drydock.hosts.agent_processes import AgentProcesses, agent_user
from drydock.hosts.disturbances import edit_node, with_annotation, with_cordon, with_label
from drydock.rollout.cluster import EmbeddedCluster
from drydock.rollout.sample_cluster import NAMESPACE, node_names
from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions

_DAEMON_SETS = resource_named("daemonsets")
_LOCK = "weave.works/kured-node-lock"
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The parts of the demo that a rogue uses. `agents` is None if no real agents run."""

    cluster: EmbeddedCluster
    agents: AgentProcesses | None
    nodes: int
    concurrency: int
    taint_seconds: Callable[[], float]

    @property
    def names(self) -> list[str]:
        return node_names(self.nodes)

    @property
    def victim(self) -> str:
        return self.names[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rogue:
    """How a rogue breaks one rule. `before_the_needs` runs before the hosts need a reboot, `act` once they do. With
    `at_the_end`, `act` runs when the roll-out is over, because the rule is about the final state."""

    act: Callable[[Scene], Awaitable[None]]
    before_the_needs: Callable[[Scene], None] = lambda _scene: None
    at_the_end: bool = False


def _write_lock(scene: Scene, actor: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the lock in the name of `actor`, without an agent's checks."""

    def edit(daemon_set: dict[str, Any]) -> dict[str, Any]:
        text = (daemon_set["metadata"].get("annotations") or {}).get(_LOCK)
        lock = json.loads(text) if text else {"locks": []}
        change(lock)
        return with_annotation(daemon_set, _LOCK, json.dumps(lock))

    scene.cluster.api.verbs.change(_DAEMON_SETS, NAMESPACE, "careen", edit, actor=actor)


def _holders(scene: Scene) -> list[str]:
    found = scene.cluster.api.verbs.read(_DAEMON_SETS, NAMESPACE, "careen").content
    text = (found["metadata"].get("annotations") or {}).get(_LOCK)
    return [row["nodeID"] for row in json.loads(text).get("locks", [])] if text else []


def _claim(scene: Scene, name: str) -> None:
    """As a correct agent does: first the claim's id on the Node, then the claim in the lock."""
    edit_node(
        scene.cluster,
        name,
        lambda node: with_annotation(node, "careen.dev/progress", json.dumps({"version": 1, "claim": f"rogue-{name}"})),
        actor=agent_user(name),
    )
    _write_lock(scene, agent_user(name), lambda lock: lock["locks"].append({"nodeID": name, "id": f"rogue-{name}"}))


def _ask_reboot(scene: Scene, name: str) -> None:
    scene.cluster.hosts.by_name[name].asked_file.touch()


async def _take_down_too_many(scene: Scene) -> None:
    for name in scene.names[: scene.concurrency + 1]:
        edit_node(scene.cluster, name, lambda node: with_cordon(node, cordoned=True), actor=agent_user(name))


async def _reboot_without_claim(scene: Scene) -> None:
    _ask_reboot(scene, scene.victim)
    await asyncio.sleep(_LOOK_SECONDS)


async def _reboot_undrained(scene: Scene) -> None:
    _claim(scene, scene.victim)
    _ask_reboot(scene, scene.victim)


async def _delete_a_pod(scene: Scene) -> None:
    pod = next(s for s in scene.cluster.api.store.items(PODS.storage, "shop") if s.content["spec"].get("nodeName"))
    scene.cluster.api.verbs.delete(
        PODS, pod.key[0], pod.key[1], DeleteOptions(), actor=agent_user(pod.content["spec"]["nodeName"])
    )


async def _cordon_a_held_node(scene: Scene) -> None:
    edit_node(scene.cluster, scene.victim, lambda node: with_annotation(node, "careen.dev/hold", "hands off"))
    edit_node(
        scene.cluster, scene.victim, lambda node: with_cordon(node, cordoned=True), actor=agent_user(scene.victim)
    )


async def _give_back_before_the_boot(scene: Scene) -> None:
    _claim(scene, scene.victim)
    _ask_reboot(scene, scene.victim)
    while all(e.host != scene.victim or e.what != "down" for e in scene.cluster.hosts.log):
        await asyncio.sleep(_LOOK_SECONDS)
    _write_lock(
        scene,
        agent_user(scene.victim),
        lambda lock: lock.update(locks=[r for r in lock["locks"] if r["nodeID"] != scene.victim]),
    )


async def _give_back_before_the_workloads_are_well(scene: Scene) -> None:
    _claim(scene, scene.victim)
    for name in scene.names:
        edit_node(
            scene.cluster,
            name,
            lambda node: with_cordon(node, cordoned=True),
            actor=agent_user(scene.victim) if name == scene.victim else "person",
        )
    pod = next(
        s
        for s in scene.cluster.api.store.items(PODS.storage, "shop")
        if s.content["spec"].get("nodeName") == scene.victim
    )
    await _evict(scene, *pod.key)
    _ask_reboot(scene, scene.victim)
    while all(e.host != scene.victim or e.what != "ready" for e in scene.cluster.hosts.log):
        await asyncio.sleep(_LOOK_SECONDS)
    _write_lock(
        scene,
        agent_user(scene.victim),
        lambda lock: lock.update(locks=[r for r in lock["locks"] if r["nodeID"] != scene.victim]),
    )


async def _evict(scene: Scene, namespace: str, name: str) -> None:
    while True:
        try:
            evict(scene.cluster.api.verbs, namespace, name, DeleteOptions(), actor=agent_user(scene.victim))
        except ApiError as error:
            if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            await asyncio.sleep(_LOOK_SECONDS)  # its budget is not counted yet
        else:
            return


async def _claim_too_many(scene: Scene) -> None:
    for name in scene.names[: scene.concurrency + 1]:
        if name not in _holders(scene):
            _claim(scene, name)


async def _claim_twice(scene: Scene) -> None:
    for _ in range(2):
        _claim(scene, scene.victim)


async def _end_a_pause(scene: Scene) -> None:
    _write_lock(scene, "person", lambda lock: lock.update(nodeID="manual"))
    _write_lock(scene, agent_user(scene.victim), lambda lock: lock.update(nodeID=""))


async def _steal_a_claim(scene: Scene) -> None:
    _claim(scene, scene.victim)
    _write_lock(
        scene,
        agent_user(scene.names[0]),
        lambda lock: lock.update(locks=[r for r in lock["locks"] if r["nodeID"] != scene.victim]),
    )


async def _write_another_node(scene: Scene) -> None:
    edit_node(
        scene.cluster,
        scene.victim,
        lambda node: with_label(node, "example.com/mine", "now"),
        actor=agent_user(scene.names[0]),
    )


async def _uncordon_a_persons_cordon(scene: Scene) -> None:
    edit_node(scene.cluster, scene.victim, lambda node: with_cordon(node, cordoned=True))
    edit_node(
        scene.cluster, scene.victim, lambda node: with_cordon(node, cordoned=False), actor=agent_user(scene.victim)
    )


async def _reboot_twice(scene: Scene) -> None:
    for boots in (1, 2):
        _ask_reboot(scene, scene.victim)
        while sum(e.host == scene.victim and e.what == "ready" for e in scene.cluster.hosts.log) < boots:
            await asyncio.sleep(_LOOK_SECONDS)


def _stop_the_agent_of_the_victim(scene: Scene) -> None:
    if scene.agents is not None:
        scene.agents.kill(scene.victim)


async def _let_the_time_pass(scene: Scene) -> None:
    clock = scene.cluster.api.store.clock
    began = clock()
    while clock() - began < scene.taint_seconds() + 1.0:
        await asyncio.sleep(_LOOK_SECONDS)


async def _say_nothing(_scene: Scene) -> None:
    """The rule is broken already: `_stop_the_agent_of_the_victim` stopped one agent, so this node never reboots."""


async def _mark_without_saying_why(scene: Scene) -> None:
    def edit(node: dict[str, Any]) -> dict[str, Any]:
        return with_label(with_annotation(node, "careen.dev/reason", None), "careen.dev/reboot", "required")

    edit_node(scene.cluster, scene.victim, edit, actor=agent_user(scene.victim))


async def _leave_a_label(scene: Scene) -> None:
    _stop_the_agent_of_the_victim(scene)
    edit_node(
        scene.cluster,
        scene.victim,
        lambda node: with_label(node, "careen.dev/reboot", "required"),
        actor=agent_user(scene.victim),
    )


ROGUES: dict[str, Rogue] = {
    "nodes-down": Rogue(act=_take_down_too_many),
    "budgets": Rogue(act=_take_down_too_many),
    "claim": Rogue(act=_reboot_without_claim),
    "reboot": Rogue(act=_reboot_without_claim),
    "cordoned": Rogue(act=_reboot_undrained),
    "drained": Rogue(act=_reboot_undrained),
    "eviction": Rogue(act=_delete_a_pod),
    "hold": Rogue(act=_cordon_a_held_node),
    "pause": Rogue(act=_end_a_pause),
    "release": Rogue(act=_give_back_before_the_boot),
    "early": Rogue(act=_give_back_before_the_boot),
    "settled": Rogue(act=_give_back_before_the_workloads_are_well),
    "claims": Rogue(act=_claim_too_many),
    "double": Rogue(act=_claim_twice),
    "theft": Rogue(act=_steal_a_claim),
    "own-node": Rogue(act=_write_another_node),
    "foreign": Rogue(act=_uncordon_a_persons_cordon),
    "loop": Rogue(act=_reboot_twice),
    "once": Rogue(act=_say_nothing, before_the_needs=_stop_the_agent_of_the_victim, at_the_end=True),
    "taint": Rogue(act=_let_the_time_pass, before_the_needs=_stop_the_agent_of_the_victim),
    "explained": Rogue(act=_mark_without_saying_why),
    "finished": Rogue(act=_say_nothing, before_the_needs=_stop_the_agent_of_the_victim, at_the_end=True),
    "tidy": Rogue(act=_leave_a_label, at_the_end=True),
    "end": Rogue(act=_leave_a_label, at_the_end=True),
}
