"""Disturbances of a simulated roll-out by networks, machines, workloads and operators: an agent loses its network, a
host boots twice, pods end late, a disruption budget allows no eviction, the ConfigMap changes, or careen's DaemonSet is
updated. Disturbances by people are in `people.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from careen.settings.live import KEY, Invocation, LiveSettings, SeenConfigMap
from tests.careen.chaos.fleet.agents import CutOff

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

Act = Callable[["World", str], None]


def cut_off(world: World, name: str) -> None:
    """Break the network of this node's agent for 5 to 150 seconds. The other agents keep their network."""
    until = world.now + world.chance.uniform(5.0, 150.0)
    world.agents.cut_off[name] = (until, world.chance.choice(list(CutOff)))


def boot_twice(world: World, name: str) -> None:
    """Make the host boot a second time soon after its next boot, as after a firmware update or a kernel panic."""
    world.fleet.hosts[name].more_boots = 1


def go_down_slowly(world: World, name: str) -> None:
    """Make the host take 20 to 70 seconds to shut down after a reboot request."""
    world.fleet.hosts[name].takes_long_to_go_down = True


def end_late(world: World, name: str) -> None:
    """For 20 to 120 seconds, make this node's kubelet keep all terminating pods, even after their grace period."""
    world.fleet.workloads.ends_from[name] = world.now + world.chance.uniform(20.0, 120.0)


def close_budget(world: World, _name: str) -> None:
    """Make the disruption budget of one application allow no eviction for 5 to 100 seconds."""
    workloads = world.fleet.workloads
    guarded = [app for app in workloads.apps.values() if app.may_be_away is not None]
    if guarded:
        app = world.chance.choice(guarded)
        workloads.set_budget(app.name, 0)
        world.at(world.chance.uniform(5.0, 100.0), lambda: workloads.set_budget(app.name, app.may_be_away or 0))


def forget_lists(world: World, _name: str) -> None:
    """Compact the server's history. A client that has read only some pages of a list then gets status 410."""
    world.server.store.forget_history()


# The ConfigMap ---------------------------------------------------------------------------------------------------

_TEXTS = (
    "",
    'reboot-days: ""\n',
    "concurrency: 1\n",
    "prefer-no-schedule-taint: other.key/soon\n",
    'prefer-no-schedule-taint: ""\n',
    "drain-timeout: 30s\n",
    "order: zone\n",
    "drain-parallel: 3\nlock-release-delay: 5s\n",
    "reboot-days: sometimes\n",
    "concurrency: [1\n",
    "no-such-setting: 1\n",
)
_LIVE = ("window", "concurrency", "taint_key", "drain", "order", "lock_release_delay_seconds")
"""The settings that `edit_config_map` may change. All other settings, such as the deadlines, stay as in
`World.policy`."""


def live_settings(world: World, name: str) -> LiveSettings:
    """Return the settings that this node's agent uses now."""
    if name not in world.live:
        flags = {"node_id": (name,), "concurrency": (str(world.shape.concurrency),)}
        world.live[name] = LiveSettings(Invocation(flags=flags, environment={}), None, config_map_name="careen/careen")
    return world.live[name]


def offer(world: World, name: str, seen: SeenConfigMap | None) -> None:
    live = live_settings(world, name)
    live.offer(seen)
    in_force = {each: getattr(live.policy, each) for each in _LIVE}
    world.settings[name] = {**world.settings.get(name, {}), **in_force}
    world.order(name)


def edit_config_map(world: World, _name: str) -> None:
    """Write a valid or invalid text into the ConfigMap of careen's settings, or delete this ConfigMap. Each agent sees
    the change up to ten seconds later."""
    text = world.chance.choice((*_TEXTS, None))
    seen = None if text is None else SeenConfigMap(uid="one", resource_version=str(world.now), data={KEY: text})
    for name in world.shape.names:
        world.at(world.chance.uniform(0.0, 10.0), lambda name=name: offer(world, name, seen))
    world.at(10.0, world.touch_config_map)


# careen's own DaemonSet ------------------------------------------------------------------------------------------


def roll_out(world: World, _name: str) -> None:
    """Replace all agents one after another by agents of the current release, as a rolling update of careen's DaemonSet
    does."""
    _roll(world, "careen:2", older=())


def roll_back(world: World, _name: str) -> None:
    """Replace some or all agents by agents of the previous release, one after another in random order."""
    names = world.chance.sample(world.shape.names, world.chance.randint(1, len(world.shape.names)))
    _roll(world, "careen:0", older=tuple(names))


def _roll(world: World, image: str, older: tuple[str, ...]) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    world.server.change(
        "daemonsets",
        "careen",
        lambda old: {**old, "spec": {**old["spec"], "template": template}},
        actor="person",
        namespace="careen",
    )
    at = 0.0
    for name in older or world.shape.names:
        at += world.chance.uniform(0.5, 6.0)
        world.at(at, lambda name=name: _replace(world, name, is_older=bool(older)))


def _replace(world: World, name: str, *, is_older: bool) -> None:
    world.older.discard(name)
    if is_older:
        world.older.add(name)
    for process in [each for each in world.agents.processes if each.node == name]:
        world.agents.replace(process)
    _say_progress(world)


def _say_progress(world: World) -> None:
    """Change the DaemonSet's status, as the DaemonSet controller does for each replaced pod. The DaemonSet then has a
    new resource version, so an agent's write of the lock (an annotation of this DaemonSet) may conflict."""
    world.server.change(
        "daemonsets",
        "careen",
        lambda old: {**old, "status": {**old["status"], "updatedNumberScheduled": int(world.now)}},
        actor="system:daemon-set-controller",
        namespace="careen",
        subresource="status",
    )


NETWORK: tuple[Act, ...] = (cut_off, forget_lists)
MACHINES: tuple[Act, ...] = (boot_twice, go_down_slowly)
WORKLOADS: tuple[Act, ...] = (end_late, close_budget)
SETTINGS: tuple[Act, ...] = (edit_config_map,)
RELEASES: tuple[Act, ...] = (roll_out, roll_back)


def calm(world: World) -> None:
    """Restore the usual state: every agent has a network, the disruption budgets allow evictions, the ConfigMap is
    valid, and all agents run the current release."""
    world.agents.cut_off.clear()
    world.fleet.workloads.ends_from.clear()
    world.fleet.workloads.open_budgets()
    world.fleet.workloads.remove_bare_pods()
    world.live.clear()
    for host in world.fleet.hosts.values():
        host.more_boots, host.takes_long_to_go_down = 0, False
    for name in sorted(world.older):
        _replace(world, name, is_older=False)
