"""Simulates the machines and kubelets of a fleet. `workloads.py` simulates their pods."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from careen.core.facts.observation import Need, NeedAnswer, SelfTest, Unknown
from careen.host import reboot
from drydock.checker.journal import HostEvent
from tests.careen.chaos.fleet.small_server import SmallServer
from tests.careen.chaos.fleet.workloads import Workloads, plain_apps, town_apps

_KUBELET = "system:node"
_LOOK_SECONDS = 60  # after which an agent does not wait for a look any longer
_LONG_SHUTDOWN = (20.0, 70.0)  # systemd waits 90 s for a service that does not stop


@dataclass(kw_only=True)
class Host:
    """One simulated machine: the methods through which its agent reads and reboots the host, and fields by which a test
    sets how the host behaves."""

    name: str
    fleet: Fleet
    chance: random.Random
    boot: int = 1
    booted_at: float = -100.0
    is_up: bool = True
    has_need: bool = False
    need_survives: int = 0  # how many reboots the need outlives
    behaviour: str = "works"  # works, fails, silent: the effect of the reboot command
    more_boots: int = 0  # how many of the next boots are followed by a power failure within 25 s
    takes_long_to_go_down: bool = False
    is_going_down: bool = False
    is_sentinel_readable: bool = True
    hangs: bool = False  # its file system: no look at the sentinel file ends
    need_at: float = 0.0  # when the sentinel file appeared
    keeps_boot_id: bool = False  # as in a container of LXC, which shows the boot id of its host

    # These three attributes are not in the protocol `Host` of careen.host. `careen.agent.startup.wiring` reads them
    # from a `LocalHost`, which this class replaces if a test runs a whole agent.
    soft_reboots: None = None
    has_commands: bool = False
    longest_uptime_seconds: None = None

    @property
    def need(self) -> Host:
        return self

    @property
    def boot_id(self) -> str:
        return f"boot-{self.name}-{1 if self.keeps_boot_id else self.boot}"

    async def read_need(self) -> Need:
        for _ in range(_LOOK_SECONDS):
            if not self.hangs:
                break
            await asyncio.sleep(1.0)
        if self.hangs:
            return Need(answer=NeedAnswer.UNKNOWN, detail="the look does not end")
        if not self.is_sentinel_readable:
            return Need(answer=NeedAnswer.UNKNOWN, detail="stale file handle")
        return Need(answer=NeedAnswer.YES if self.has_need else NeedAnswer.NO)

    def read_boot_id(self) -> str | Unknown:
        return self.boot_id

    def uptime(self) -> float:
        return self.fleet.now - self.booted_at

    async def test_reboot(self) -> SelfTest:
        return SelfTest()

    async def ask_reboot(self) -> reboot.RebootAnswer:
        self.fleet.log_host(self, "asked")
        if self.behaviour != "works":
            self.fleet.log_host(self, "refused" if self.behaviour == "fails" else "ignored")
        if self.behaviour == "fails":
            return reboot.RebootRefused("the reboot command failed with exit code 1")
        if self.behaviour == "works":
            self.fleet.begin_reboot(self)
        return reboot.RebootRequested()

    def needs_reboot(self) -> None:
        if not self.has_need:
            self.has_need, self.need_at = True, self.fleet.now
            self.fleet.log_host(self, "need")


class Fleet:
    """All hosts with their Nodes and pods on one simulated API server. The random number generator `chance` determines
    every random choice."""

    def __init__(self, server: SmallServer, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self.server = server
        self.hosts: dict[str, Host] = {}
        self.log: list[HostEvent] = []
        self.labels: dict[str, dict[str, str]] = {}
        self.on_down: Callable[[str], None] = lambda _: None
        self.on_up: Callable[[str], None] = lambda _: None
        self.on_boot: list[Callable[[Host], None]] = []
        """Called when a host has booted, before its kubelet and its agent start."""
        self.slowness = 1.0
        self.shutdown_seconds = (0.1, 4.0)
        self._loop = loop
        # Each host gets its own random numbers, with this seed and the host's name. So one more event of a host does
        # not change the random numbers of other hosts.
        self._seed = chance.random()
        self.workloads = Workloads(
            server,
            self._seed,
            later=self.later,
            places=self._places,
            is_running=self._is_running,
        )

    @property
    def now(self) -> float:
        return self._loop.time()

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._loop.call_later(seconds, what)

    def log_host(self, host: Host, what: str) -> None:
        self.log.append(HostEvent(at=self.now, host=host.name, what=what, boot_id=host.boot_id))

    # Nodes and their kubelets --------------------------------------------------------------------------------

    def add_host(self, name: str, labels: dict[str, str]) -> Host:
        self.hosts[name] = Host(name=name, fleet=self, chance=random.Random(f"{self._seed} {name}"))
        self.labels[name] = {"kubernetes.io/hostname": name, **labels}
        self.register(name)
        return self.hosts[name]

    def register(self, name: str) -> None:
        """Create the Node if it is missing, as its kubelet does, and create the missing DaemonSet pods of the node."""
        host = self.hosts[name]
        if self.server.get("nodes", name) is None:
            self.server.put(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": dict(self.labels[name]), "annotations": {"theirs": "note"}},
                    "spec": {"taints": [{"key": "theirs", "effect": "PreferNoSchedule"}]},
                    "status": _node_status(host, ready=host.is_up),
                },
                actor=_KUBELET,
            )
        self.workloads.place_daemons(name)

    def report(self, name: str, *, ready: bool) -> None:
        host = self.hosts[name]
        self.server.change(
            "nodes",
            name,
            lambda old: {**old, "status": _node_status(host, ready=ready)},
            actor=_KUBELET,
            subresource="status",
        )

    def begin_reboot(self, host: Host) -> None:
        if not host.is_going_down and host.is_up:
            host.is_going_down = True
            boot, seconds = host.boot, _LONG_SHUTDOWN if host.takes_long_to_go_down else self.shutdown_seconds
            self.later(host.chance.uniform(*seconds), lambda: self._go_down(host, boot))

    def lose_power(self, name: str) -> None:
        """Stop the machine at once, as a power failure does. The machine boots again some seconds later."""
        host = self.hosts[name]
        self._go_down(host, host.boot, "down" if host.is_going_down else "lost")

    def _go_down(self, host: Host, boot: int, what: str = "down") -> None:
        if not host.is_up or host.boot != boot:
            return
        host.is_up = False
        self.log_host(host, what)
        self.on_down(host.name)
        self.later(host.chance.uniform(0.1, 6.0), lambda: self._miss(host))
        self.later(host.chance.uniform(3.0, 15.0) * self.slowness, lambda: self._come_up(host))

    def _miss(self, host: Host) -> None:
        if not host.is_up:
            self.report(host.name, ready=False)
            self.workloads.node_lost(host.name)

    def _come_up(self, host: Host) -> None:
        host.boot, host.booted_at, host.is_up, host.is_going_down = host.boot + 1, self.now, True, False
        boot = host.boot
        if host.need_survives:
            host.need_survives -= 1
        else:
            host.has_need = False
        self.log_host(host, "booted")
        for each in self.on_boot:
            each(host)
        if host.more_boots:
            host.more_boots -= 1
            self.later(host.chance.uniform(0.5, 25.0), lambda: self._go_down(host, boot, "lost"))
        self.workloads.daemons_ready(host.name, is_ready=False)
        self.later(host.chance.uniform(0.1, 5.0), lambda: self._kubelet_up(host, boot))
        self.later(host.chance.uniform(0.1, 6.0), lambda: self._agent_up(host, boot))

    def _agent_up(self, host: Host, boot: int) -> None:
        if host.is_up and host.boot == boot:
            self.on_up(host.name)

    def _kubelet_up(self, host: Host, boot: int) -> None:
        if not host.is_up or host.boot != boot:
            return
        self.register(host.name)
        self.report(host.name, ready=True)
        self.log_host(host, "ready")
        self.workloads.node_back(host.name)
        self.later(host.chance.uniform(0.1, 3.0), lambda: self._daemons_up(host, boot))

    def _daemons_up(self, host: Host, boot: int) -> None:
        if host.is_up and host.boot == boot:
            self.workloads.daemons_ready(host.name, is_ready=True)

    # Pods ----------------------------------------------------------------------------------------------------

    def add_workloads(self, replicas: int) -> None:
        self.workloads.add_apps(plain_apps(replicas), list(self.hosts))

    def add_town(self) -> None:
        """Add the usual mixture of workloads: at least six pods per node, including pods that no controller would
        recreate."""
        names = list(self.hosts)
        self.workloads.daemons.append("log")
        self.workloads.add_apps(town_apps(len(names)), names)
        for name in names:
            self.workloads.place_daemons(name)
        for name, ends in zip(names, ("completes", "fails", "cleared"), strict=False):
            self.workloads.add_bare_pod(name)
            self.workloads.add_job(name, ends)

    def add_crashing_daemon(self, name: str) -> None:
        self.workloads.add_crashing_daemon(name)

    def add_job(self, node: str, ends: str) -> None:
        self.workloads.add_job(node, ends)

    def collect_pods_of(self, name: str) -> None:
        self.workloads.collect_pods_of(name)

    def _places(self) -> list[str]:
        """Return the nodes on which a scheduler may place a pod now."""
        return [
            node["metadata"]["name"]
            for node in self.server.all("nodes")
            if not node["spec"].get("unschedulable") and self._is_up(node["metadata"]["name"])
        ]

    def _is_up(self, name: str) -> bool:
        return name in self.hosts and self.hosts[name].is_up and not self.hosts[name].is_going_down

    def _is_running(self, name: str) -> bool:
        """Whether the kubelet of this node runs and can start and end pods. Also true for a name without a
        host, such as the empty node name of a pod that is not bound."""
        return name not in self.hosts or self.hosts[name].is_up


def _node_status(host: Host, *, ready: bool) -> dict[str, Any]:
    return {
        "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        "nodeInfo": {"bootID": host.boot_id},
        "allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"},
    }
