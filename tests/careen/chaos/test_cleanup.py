"""A simulated roll-out is interrupted, and `careen cleanup` restores every Node and the lock.

The command runs against a server with the objects that the simulation left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.policy import AlertPolicy
from careen.core.node.marks import MARKS, Proof
from drydock.server.kinds.resources import resource_named
from drydock.server.testing import server_in_thread
from tests.careen.chaos.fleet import people
from tests.careen.chaos.fleet.agents import LOCK
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World
from tests.careen.cli.conftest import Desk

THEIRS = {"key": "example.org/theirs", "effect": "PreferNoSchedule"}
_WRITTEN = {resource_named(plural).storage for plural in ("nodes", "daemonsets")}
KNOWN = {*(mark.key for mark in MARKS if mark.key), keys.LOCK_ANNOTATION}


def with_marks_of_others(world: World) -> None:
    """Change the Nodes before the roll-out as other clients do: cordon n4, annotate n2, taint n1, and give every node a
    label that a drain changes."""
    people.cordon(world, "n4")
    people.annotate(world, "n2", "example.org/theirs", "x")
    for name in world.shape.names:
        world.server.change("nodes", name, in_the_pool, actor="person")
    world.server.change("nodes", "n1", lambda old: {**old, "spec": {**old["spec"], "taints": [THEIRS]}}, actor="person")


def in_the_pool(node: dict[str, Any]) -> dict[str, Any]:
    labels = {**(node["metadata"].get("labels") or {}), "pool": "web"}
    return {**node, "metadata": {**node["metadata"], "labels": labels}}


async def interrupted_after(seconds: float) -> World:
    world = World(Shape(nodes=4, concurrency=2), prepare=with_marks_of_others)
    people.change_settings(
        world,
        count_cordoned=False,
        annotate_nodes=True,
        post_reboot_labels={"pool": "rebooted"},
        alerts=AlertPolicy(),
    )
    await world.all_need_a_reboot()
    await asyncio.sleep(seconds)
    world.stop()
    return world


def touched(node: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a Node that careen may change, such as labels, taints and the cordon."""
    metadata, spec = node["metadata"], node["spec"]
    return {
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "taints": [taint for taint in spec.get("taints") or [] if taint["key"] != "node.kubernetes.io/unschedulable"],
        "cordoned": bool(spec.get("unschedulable")),
    }


@pytest.fixture(scope="module", params=[8.0, 12.0, 16.0, 40.0, 60.0, 400.0])
def world(request: pytest.FixtureRequest) -> World:
    return run_virtually(interrupted_after(request.param))


def test_careen_cleanup_restores_the_state_before_the_roll_out(world: World, tmp_path: Path) -> None:
    with server_in_thread() as server:
        daemonset = world.server.get("daemonsets", "careen", "careen") or {}
        # No agent runs any more, and the flag says that careen wrote kured's annotations.
        daemonset["status"] = {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberMisscheduled": 0}
        daemonset["spec"]["template"]["spec"]["containers"][0]["args"] = ["agent", "--annotate-nodes"]
        server.seed(daemonset, *world.server.all("nodes"))
        desk = Desk(server, server.write_kubeconfig(tmp_path / "kubeconfig"))
        assert desk.run("cleanup", "--yes", "--even-rebooting").exit_code == 0
        after = {name: touched(server.get("nodes", name) or {}) for name in world.shape.names}
        assert after == {name: touched(node) for name, node in world.initial.items()}
        assert desk.lock_text() is None
        assert desk.ok("cleanup").splitlines()[-1] == "There are no marks of careen to remove."


def test_careen_cleanup_knows_every_key_that_the_agents_write(world: World) -> None:
    configured = {"pool"}
    assert keys_written(world) - configured <= KNOWN


def test_a_roll_out_writes_almost_every_key_that_careen_cleanup_knows() -> None:
    """If a roll-out wrote few keys, `test_careen_cleanup_knows_every_key_that_the_agents_write` would check little. A
    few keys may be missing, because agents write them only in special situations, for example after an action of a
    person or after a failure. The test lists these keys."""
    long = run_virtually(interrupted_after(400.0))
    assert KNOWN - keys_written(long) <= {
        *(mark.key for mark in MARKS if mark.proof is Proof.PERSON),
        "careen.dev/drain-memory",  # the simulated pods become ready soon, so no budget stays closed
        "careen.dev/forecast",
        "careen.dev/learned-queries",
        "careen.dev/moves-in-zone",  # the fleet's pods need not spread over zones
        "careen.dev/need",  # the simulated hosts give no reason
        "careen.dev/settings",
        "careen.dev/warning",
        "careen.dev/refusals",
        "careen.dev/refused",
    }


def keys_written(world: World) -> set[str]:
    """Return the keys of all labels, annotations and taints that agents added to a Node or to the DaemonSet at any
    time."""
    found: set[str] = set()
    for change in world.server.store.journal:
        if change.storage in _WRITTEN and change.after and change.before and change.actor.startswith("careen-agent-"):
            found |= keys_of(change.after.content) - keys_of(change.before.content)
    return found


def keys_of(content: Mapping[str, Any]) -> set[str]:
    metadata, taints = content["metadata"], content.get("spec", {}).get("taints") or []
    return {
        *(metadata.get("labels") or {}),
        *(metadata.get("annotations") or {}),
        *(taint["key"] for taint in taints),
    }


def test_the_lock_is_careens_only_annotation_on_the_daemonset() -> None:
    assert LOCK == keys.LOCK_ANNOTATION
