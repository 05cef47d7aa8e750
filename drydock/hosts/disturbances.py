"""Failures, and actions of people, during a roll-out. The checker shows whether the agents still behave."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from drydock.rollout.cluster import EmbeddedCluster
from drydock.rollout.sample_cluster import node_names
from drydock.server.kinds.resources import resource_named

_NODES = resource_named("nodes")
_PERSON = "person"
_LOOK_SECONDS = 0.1
_CRASH_EVERY_SECONDS = (3.0, 8.0)
_OUTAGE_AFTER_SECONDS, _OUTAGE_SECONDS = 6.0, 3.0


def edit_node(
    cluster: EmbeddedCluster, name: str, edit: Callable[[dict[str, Any]], dict[str, Any]], *, actor: str = _PERSON
) -> None:
    cluster.api.verbs.change(_NODES, "", name, edit, actor=actor)


def with_annotation(node: dict[str, Any], key: str, value: str | None) -> dict[str, Any]:
    metadata = node["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != key}
    return {**node, "metadata": {**metadata, "annotations": annotations | ({} if value is None else {key: value})}}


def with_label(node: dict[str, Any], key: str, value: str) -> dict[str, Any]:
    metadata = node["metadata"]
    return {**node, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), key: value}}}


def with_taint(node: dict[str, Any], key: str, effect: str) -> dict[str, Any]:
    spec = node["spec"]
    return {**node, "spec": {**spec, "taints": [*(spec.get("taints") or []), {"key": key, "effect": effect}]}}


def with_cordon(node: dict[str, Any], *, cordoned: bool) -> dict[str, Any]:
    return {**node, "spec": {**node["spec"], "unschedulable": cordoned}}


def mark_as_a_person_would(cluster: EmbeddedCluster, count: int) -> None:
    """Puts a taint, a label and an annotation on the last of the `count` nodes. The agents must leave all three."""
    name = node_names(count)[-1]
    edit_node(cluster, name, lambda node: with_taint(node, "example.com/spot", "PreferNoSchedule"))
    edit_node(
        cluster,
        name,
        lambda node: with_label(
            with_annotation(node, "example.com/note", "ask the storage team first"), "example.com/rack", "r7"
        ),
    )


async def hold_a_node_for_a_while(cluster: EmbeddedCluster, count: int, seconds: float) -> None:
    """Holds one node when the hosts need their reboots, and ends the hold later."""
    if count < 4:
        return
    held = node_names(count)[count // 2]
    edit_node(cluster, held, lambda node: with_annotation(node, "careen.dev/hold", "replacing a fan"))
    await asyncio.sleep(seconds)
    edit_node(cluster, held, lambda node: with_annotation(node, "careen.dev/hold", None))


async def cordon_a_finished_node_for_a_while(cluster: EmbeddedCluster, count: int, seconds: float) -> None:
    """Cordons the first node that is back in service. It counts as down until it is uncordoned."""
    if count < 4:
        return
    while not (done := [name for name in node_names(count) if _is_done(cluster, name)]):
        await asyncio.sleep(_LOOK_SECONDS)
    edit_node(cluster, done[0], lambda node: with_cordon(node, cordoned=True))
    await asyncio.sleep(seconds)
    edit_node(cluster, done[0], lambda node: with_cordon(node, cordoned=False))


def _is_done(cluster: EmbeddedCluster, name: str) -> bool:
    node = cluster.api.verbs.read(_NODES, "", name).content
    is_back = any(e.host == name and e.what == "ready" for e in cluster.hosts.log)
    return (
        is_back
        and "careen.dev/reboot" not in (node["metadata"].get("labels") or {})
        and not node["spec"].get("unschedulable")
    )


async def crash_agents(crash: Callable[[str], object], names: list[str], chance: random.Random) -> None:
    """Kills one agent after another, in any phase, until cancelled.

    Each kill doubles the time for which that agent is spared: otherwise the only agent of a fleet of one might never
    get ready.
    """
    loop = asyncio.get_running_loop()
    spared_until: dict[str, float] = {}
    spell: dict[str, float] = {}
    while True:
        await asyncio.sleep(chance.uniform(*_CRASH_EVERY_SECONDS))
        name = chance.choice(names)
        if spared_until.get(name, 0.0) <= loop.time():
            crash(name)
            spell[name] = 2 * spell.get(name, _CRASH_EVERY_SECONDS[0])
            spared_until[name] = loop.time() + spell[name]


async def fail_the_api_server_once(cluster: EmbeddedCluster) -> None:
    await asyncio.sleep(_OUTAGE_AFTER_SECONDS)
    cluster.api.is_down = True
    await asyncio.sleep(_OUTAGE_SECONDS)
    cluster.api.is_down = False
