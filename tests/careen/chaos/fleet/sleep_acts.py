"""Disturbances of agents that sleep, and of the moments at which they fall asleep and wake."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.careen.chaos.fleet.sleepers import Instant

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

Act = Callable[["World", str], None]


def die_changing_form(world: World, name: str) -> None:
    """Let the node's agent die when it next falls asleep or wakes, at any instant of that."""
    world.agents.doomed[name] = world.chance.choice(list(Instant))


def spoil_handover(world: World, name: str) -> None:
    """Let the node's next woken agent find a handover that it cannot read."""
    world.agents.spoilt.add(name)


def hang_look(world: World, name: str) -> None:
    """Let no look at the files of a sleeping agent end for 5 to 200 seconds, as with a file system of a server that is
    gone."""
    if any(each.is_asleep for each in world.agents.processes if each.node == name):
        host = world.fleet.hosts[name]
        host.hangs = True
        world.order(name)
        world.at(world.chance.uniform(5.0, 200.0), lambda: setattr(host, "hangs", False))


def need_asleep(world: World, name: str) -> None:
    """Let the host need a reboot if its agent sleeps. A need in the middle of its reboot is an act of its own."""
    if any(each.is_asleep for each in world.agents.processes if each.node == name):
        world.fleet.hosts[name].needs_reboot()


def touch_config_map(world: World, _name: str) -> None:
    """Write the ConfigMap of the settings without a change of them."""
    world.touch_config_map()


def end_watches(world: World, _name: str) -> None:
    """Let an API server end every watch, as before it restarts."""
    world.agents.break_connections()


SLEEP: tuple[Act, ...] = (
    die_changing_form,
    die_changing_form,
    die_changing_form,
    spoil_handover,
    hang_look,
    need_asleep,
    touch_config_map,
    end_watches,
)


def calm(world: World) -> None:
    """Let agents fall asleep and wake undisturbed."""
    world.agents.doomed.clear()
    world.agents.spoilt.clear()
    for host in world.fleet.hosts.values():
        host.hangs = False
