"""Acts of people and machines that disturb a simulated roll-out. In a storm (a random series of such acts), each act
has the name of its function, so that the report of a failure is readable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from careen.core.facts.policy import DrainPolicy
from careen.core.facts.windows import Window
from tests.careen.chaos.fleet import agents
from tests.careen.chaos.fleet.agents import LOCK

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

_PERSON = "person"
_OURS = "careen.dev/"
REQUEST = f"{_OURS}request"

Act = Callable[["World", str], None]


def annotate(world: World, name: str, key: str, value: str | None) -> None:
    world.server.change("nodes", name, lambda old: _with(old, "annotations", {key: value}), actor=_PERSON)


def _with(obj: dict[str, Any], part: str, change: Mapping[str, str | None]) -> dict[str, Any]:
    merged = {**(obj["metadata"].get(part) or {}), **change}
    return {
        **obj,
        "metadata": {**obj["metadata"], part: {key: value for key, value in merged.items() if value is not None}},
    }


def edit_lock(world: World, edit: Callable[[dict[str, Any]], dict[str, Any] | str | None]) -> None:
    """Edit the lock annotation as `kubectl edit` does. `edit` gets the parsed JSON object, and returns the new object,
    a raw text, or None to remove the annotation."""
    found = world.server.get("daemonsets", "careen", "careen")
    if found is None:
        return
    try:
        seen = json.loads((found["metadata"].get("annotations") or {}).get(LOCK) or "{}")
    except ValueError:
        seen = {}
    after = edit(seen)
    text = json.dumps(after) if isinstance(after, dict) else after
    world.server.change(
        "daemonsets", "careen", lambda old: _with(old, "annotations", {LOCK: text}), actor=_PERSON, namespace="careen"
    )


# Nodes -----------------------------------------------------------------------------------------------------------


def cordon(world: World, name: str) -> None:
    """Cordon the node as a person does. Does nothing if the node is already cordoned."""
    node = world.server.get("nodes", name)
    if node is not None and not node["spec"].get("unschedulable"):
        world.persons.cordons.add(name)
        world.server.change(
            "nodes", name, lambda old: {**old, "spec": {**old["spec"], "unschedulable": True}}, actor=_PERSON
        )


def uncordon(world: World, name: str) -> None:
    world.persons.cordons.discard(name)
    world.server.change(
        "nodes", name, lambda old: {**old, "spec": {**old["spec"], "unschedulable": False}}, actor=_PERSON
    )


def hold(world: World, name: str) -> None:
    annotate(world, name, f"{_OURS}hold", "replacing a fan")


def let_go(world: World, name: str) -> None:
    annotate(world, name, f"{_OURS}hold", None)


def retry(world: World, name: str) -> None:
    annotate(world, name, f"{_OURS}retry", "2026-03-04T12:00:00Z")


def keep_down(world: World, name: str) -> None:
    """Request a maintenance of the node as `careen maintenance` does, and end the maintenance 5 to 200 seconds
    later."""
    annotate(world, name, REQUEST, "maintenance")
    world.at(world.chance.uniform(5.0, 200.0), lambda: hand_back(world, name))


def hand_back(world: World, name: str) -> None:
    annotate(world, name, REQUEST, None)


def touch(world: World, name: str) -> None:
    """Change an annotation of the Node as another controller does, so that the resource versions that agents have read
    are outdated."""
    annotate(world, name, "theirs-too", str(world.now))
    world.at(1.0, lambda: annotate(world, name, "theirs-too", None))


def wipe_record(world: World, name: str) -> None:
    """Remove the record (the annotation in which careen stores the progress of a reboot) from the Node. careen's taint
    and label remain."""
    annotate(world, name, f"{_OURS}progress", None)


def spoil_record(world: World, name: str) -> None:
    if f"{_OURS}progress" in _annotations(world, name):
        annotate(world, name, f"{_OURS}progress", '{"version": 1, "phase": "Elsewhere"}')


def wipe_label(world: World, name: str) -> None:
    world.server.change("nodes", name, lambda old: _with(old, "labels", {f"{_OURS}reboot": None}), actor=_PERSON)


def wipe_taint(world: World, name: str) -> None:
    world.server.change(
        "nodes",
        name,
        lambda old: {
            **old,
            "spec": {**old["spec"], "taints": [t for t in old["spec"].get("taints") or () if t["key"] == "theirs"]},
        },
        actor=_PERSON,
    )


def delete_node(world: World, name: str) -> None:
    """Delete the Node, and its pods two seconds later. In seven of ten cases the kubelet registers the Node again
    within 200 seconds, else at the next boot."""
    world.server.remove("nodes", name, actor=_PERSON)
    world.persons.cordons.discard(name)
    world.at(2.0, lambda: world.fleet.collect_pods_of(name))
    if world.chance.random() < 0.7:
        world.at(world.chance.uniform(0.5, 200.0), lambda: register(world, name))


def recreate_node(world: World, name: str) -> None:
    """Delete the Node object. The node's running kubelet registers a new Node within three seconds. In half of the
    cases, the pods of the node are deleted as well."""
    world.server.remove("nodes", name, actor=_PERSON)
    world.persons.cordons.discard(name)
    if world.chance.random() < 0.5:
        world.fleet.collect_pods_of(name)
    world.at(world.chance.uniform(0.0, 3.0), lambda: register(world, name))


def register(world: World, name: str) -> None:
    if world.fleet.hosts[name].is_up:
        world.fleet.register(name)


def _annotations(world: World, name: str) -> dict[str, str]:
    return ((world.server.get("nodes", name) or {}).get("metadata") or {}).get("annotations") or {}


# The lock --------------------------------------------------------------------------------------------------------


def pause(world: World, _name: str) -> None:
    edit_lock(world, lambda lock: {**lock, "nodeID": "manual"})


def resume(world: World, _name: str) -> None:
    def edit(lock: dict[str, Any]) -> dict[str, Any] | None:
        rows = [row for row in lock.get("locks") or () if row["nodeID"] != "manual"]
        return {**lock, "nodeID": rows[0]["nodeID"] if rows else "", "locks": rows} if lock else None

    edit_lock(world, edit)


def release(world: World, name: str) -> None:
    """Remove the node's claim from the lock, as `careen lock release NODE` does."""
    edit_lock(
        world,
        lambda lock: (
            {
                **lock,
                "nodeID": "manual" if lock.get("nodeID") == "manual" else "",
                "locks": [row for row in lock.get("locks") or () if row["nodeID"] != name],
            }
            if lock
            else None
        ),
    )


def clear_lock(world: World, _name: str) -> None:
    edit_lock(world, lambda _: None)


def spoil_lock(world: World, _name: str) -> None:
    edit_lock(world, lambda _: "n1 please")
    world.at(world.chance.uniform(1.0, 30.0), lambda: mend_lock(world, ""))


def mend_lock(world: World, _name: str) -> None:
    """Remove the lock annotation if its content is unreadable."""
    edit_lock(world, lambda lock: lock or None)


def double_entry(world: World, name: str) -> None:
    """Add a copy of the node's claim to the lock, as after a careless paste."""

    def edit(lock: dict[str, Any]) -> dict[str, Any] | None:
        rows = lock.get("locks") or []
        return (
            {**lock, "locks": [*rows, *({**row, "id": "pasted"} for row in rows if row["nodeID"] == name)]}
            if rows
            else lock or None
        )

    edit_lock(world, edit)


def strip_entries(world: World, _name: str) -> None:
    """Remove from each claim in the lock the fields that kured does not know."""
    edit_lock(
        world,
        lambda lock: (
            {
                **lock,
                "locks": [
                    {key: row[key] for key in ("nodeID", "metadata", "created", "TTL") if key in row}
                    for row in lock["locks"]
                ],
            }
            if lock.get("locks")
            else lock or None
        ),
    )


def recreate_daemonset(world: World, _name: str) -> None:
    world.server.remove("daemonsets", "careen", actor=_PERSON, namespace="careen")
    world.at(
        world.chance.uniform(0.1, 20.0),
        lambda: None if world.server.get("daemonsets", "careen", "careen") else world.put_daemonset(),
    )


# Machines --------------------------------------------------------------------------------------------------------


def crash_agent(world: World, name: str) -> None:
    for process in [each for each in world.agents.processes if each.node == name]:
        world.agents.crash(process)


def freeze_agent(world: World, name: str) -> None:
    """Suspend the agent's process for 20 to 150 seconds, as on an overloaded host or in a frozen cgroup."""
    for process in [each for each in world.agents.processes if each.node == name]:
        process.freeze(world.chance.uniform(20.0, 150.0))


def second_agent(world: World, name: str) -> None:
    """Run a second agent on the node for 5 to 120 seconds, as after the forced deletion of a pod. The simulation has no
    lock file on the host that would stop the second agent."""
    if world.fleet.hosts[name].is_up and any(each.node == name for each in world.agents.processes):
        process = world.agents.start(name)
        world.at(world.chance.uniform(5.0, 120.0), lambda: world.agents.crash(process))


def lose_power(world: World, name: str) -> None:
    world.fleet.lose_power(name)


def step_clock(world: World, name: str) -> None:
    clock = world.agents.clocks[name]
    clock.skew_seconds = world.chance.choice([-600.0, 600.0, 30.0, 0.0])


def forget_need(world: World, name: str) -> None:
    world.fleet.hosts[name].has_need = False
    world.order(name)


def need_again(world: World, name: str) -> None:
    world.fleet.hosts[name].needs_reboot()


def hide_sentinel(world: World, name: str) -> None:
    host = world.fleet.hosts[name]
    host.is_sentinel_readable = False
    world.order(name)
    world.at(world.chance.uniform(1.0, 90.0), lambda: setattr(host, "is_sentinel_readable", True))


def break_reboot(world: World, name: str) -> None:
    world.fleet.hosts[name].behaviour = world.chance.choice(["fails", "silent", "works"])


def outlast_reboot(world: World, name: str) -> None:
    world.fleet.hosts[name].need_survives = world.chance.choice([1, 1, 3])


def outage(world: World, _name: str) -> None:
    world.agents.go_down(world.chance.uniform(5.0, 150.0))


# Workloads -------------------------------------------------------------------------------------------------------


def start_job(world: World, name: str) -> None:
    if world.fleet.hosts[name].is_up and world.server.get("nodes", name) is not None:
        world.fleet.add_job(name, world.chance.choice(["completes", "fails", "cleared"]))


def slow_evictions(world: World, _name: str) -> None:
    """For 20 to 120 seconds, let a slow webhook delay each eviction by 12 seconds."""
    world.agents.latency = agents.slow_evictions
    world.at(world.chance.uniform(20.0, 120.0), lambda: setattr(world.agents, "latency", agents.no_latency))


# Settings --------------------------------------------------------------------------------------------------------


def change_settings(world: World, **changes: Any) -> None:
    """Change the given fields of every agent's `Policy`, as an edit of the ConfigMap does. Each agent sees the
    change up to ten seconds later."""

    def change(name: str) -> None:
        world.settings[name] = {**world.settings.get(name, {}), **changes}
        world.order(name)

    for name in world.shape.names:
        world.at(world.chance.uniform(0.0, 10.0), lambda name=name: change(name))
    world.at(10.0, world.touch_config_map)


def lower_limit(world: World, _name: str) -> None:
    change_settings(world, concurrency=world.chance.randint(1, world.shape.concurrency))


def close_window(world: World, _name: str) -> None:
    change_settings(world, window=Window(days=frozenset()))


def open_window(world: World, _name: str) -> None:
    change_settings(world, window=Window())


def move_taint(world: World, _name: str) -> None:
    change_settings(world, taint_key=world.chance.choice(["careen.dev/reboot", "other.key/soon", None]))


def limit_drain(world: World, _name: str) -> None:
    change_settings(world, drain=DrainPolicy(timeout_seconds=world.chance.choice([2.0, 30.0]), force_reboot=False))


SETTINGS: tuple[Act, ...] = (lower_limit, close_window, open_window, move_taint, limit_drain)
NODES: tuple[Act, ...] = (cordon, uncordon, hold, let_go, retry, touch, wipe_record, wipe_label, wipe_taint)
LOCKS: tuple[Act, ...] = (pause, resume, release, clear_lock, spoil_lock, double_entry, strip_entries)
OBJECTS: tuple[Act, ...] = (delete_node, recreate_node, recreate_daemonset, spoil_record)
WORKLOADS: tuple[Act, ...] = (start_job, start_job, start_job, slow_evictions)
MACHINES: tuple[Act, ...] = (
    crash_agent,
    freeze_agent,
    second_agent,
    lose_power,
    step_clock,
    forget_need,
    need_again,
    hide_sentinel,
    break_reboot,
    outlast_reboot,
    outage,
)


def calm(world: World) -> None:
    """Undo what the acts of this file changed: for example, end the pause of the lock, remove cordons and annotations
    that forbid a reboot, and make reboot commands work."""
    if world.server.get("daemonsets", "careen", "careen") is None:
        world.put_daemonset()
    mend_lock(world, "")
    resume(world, "")
    world.settings.clear()
    world.touch_config_map()
    world.agents.latency = agents.no_latency
    for name, host in world.fleet.hosts.items():
        host.behaviour, host.need_survives, host.is_sentinel_readable = "works", 0, True
        world.agents.clocks[name].skew_seconds = 0.0
        world.order(name)
        register(world, name)
        let_go(world, name)
        if "Elsewhere" in _annotations(world, name).get(f"{_OURS}progress", ""):
            wipe_record(world, name)
        if name in world.persons.cordons:
            uncordon(world, name)


def help_the_failed(world: World) -> None:
    """Request a new attempt, as `careen retry NODE` does, for every node whose label says that its reboot failed."""
    for node in world.server.all("nodes"):
        if (node["metadata"].get("labels") or {}).get(f"{_OURS}reboot") == "failed":
            retry(world, node["metadata"]["name"])
