"""A cluster on virtual time: machines, whole agents and people, and the verdict at the end."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from careen.agent.observe import Forecaster
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.policy import Budget, Order, Policy
from careen.settings.live import LiveSettings
from drydock.zoo import CITIZENS
from tests.careen.chaos.fleet.admission import GITOPS, Admission
from tests.careen.chaos.fleet.agents import LOCK, START, Agents, Plan
from tests.careen.chaos.fleet.laws import verdict
from tests.careen.chaos.fleet.machines import Fleet
from tests.careen.chaos.fleet.small_server import SmallServer
from tests.careen.chaos.fleet.zoo import Zoo

ZONE, CONTROL_PLANE = "topology.kubernetes.io/zone", "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True, kw_only=True)
class Shape:
    nodes: int = 2
    zones: int = 0
    control_planes: int = 0
    concurrency: int = 1
    zone_limit: int = 0
    replicas_per_node: int = 1
    is_town: bool = False  # a cluster's usual mixture of workloads, instead of two applications
    page_size: int = 0  # of the server's lists; 0: as many items as are asked for
    has_real_forecast: bool = False
    budgets: tuple[Budget, ...] = ()
    order: Order = Order.OLDEST
    zoo: tuple[str, ...] = ()  # names of `drydock.zoo.CITIZENS`

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    def labels(self, name: str) -> dict[str, str]:
        index = self.names.index(name)
        zone = {ZONE: f"z{index % self.zones}"} if self.zones else {}
        return zone | ({CONTROL_PLANE: ""} if index < self.control_planes else {})

    def groups(self, name: str) -> dict[str, int]:
        """How many nodes of each of the node's groups may be down at once, such as `{"everybody": 2, "z0": 1}`. Shares
        no code with the agents, which are judged by it."""
        labels = self.labels(name)
        found = {"everybody": self.concurrency}
        if self.zone_limit and ZONE in labels:
            found[labels[ZONE]] = self.zone_limit
        if CONTROL_PLANE in labels:
            found["control plane"] = 1
        return found


@dataclass
class Persons:
    """The nodes that a person has cordoned."""

    cordons: set[str] = field(default_factory=set)


def nothing_goes_wrong(_number: int, _node: str, _request: object) -> None:
    return None


class World:
    """Everything that happens to one cluster. Create it while an event loop on virtual time runs."""

    def __init__(
        self,
        shape: Shape,
        *,
        plan: Plan = nothing_goes_wrong,
        seed: int = 0,
        older: Iterable[str] = (),
        agents: type[Agents] = Agents,
        prepare: Callable[[World], None] = lambda _: None,
    ) -> None:
        """`prepare` runs when machines and workloads exist, before the first agent starts."""
        loop = asyncio.get_running_loop()
        self.shape = shape
        self.seed = seed
        self.chance = random.Random(seed)
        self.server = SmallServer(clock=loop.time, wall_clock=lambda: START + timedelta(seconds=loop.time()), seed=seed)
        self.fleet = Fleet(self.server, loop, random.Random(seed + 1))
        self.admission = Admission(self.fleet.later, random.Random(seed + 3))
        self.admission.take_back = self._take_back
        self.server.admit = self.admission.admit
        self.agents = agents(self.fleet, self.policy, plan, random.Random(seed + 2))
        self.persons = Persons()
        self.settings: dict[str, dict[str, Any]] = {}
        """By node, the changed fields of its `Policy`."""
        self.live: dict[str, LiveSettings] = {}
        """By node, what its agent has read from the edited ConfigMap."""
        self.older = set(older)
        """Nodes whose agents run an older release."""
        self.forecasts: list[Any] = []
        """The real forecasters, one for each agent process."""
        self.broken: list[str] = []
        """Exceptions that nobody caught, and checks of a test that failed during the story."""
        self.booted: list[str] = []
        """What a test recorded, for example the nodes that had booted."""
        self.orders: list[tuple[float, str]] = []
        """When somebody changed a node's settings or its host's need."""
        self.home_at: float | None = None
        """When `until_home` saw the roll-out over."""
        loop.set_exception_handler(
            lambda _, context: self.broken.append(f"{context.get('message')}: {context.get('exception')!r}")
        )
        self.put_daemonset()
        for name in shape.names:
            self.fleet.add_host(name, shape.labels(name))
        if shape.is_town:
            self.fleet.add_town()
        else:
            self.fleet.add_workloads(shape.nodes * shape.replicas_per_node)
        self.zoo = Zoo(self.server, self.fleet, seed)
        self.zoo.settle(CITIZENS[name] for name in shape.zoo)
        self.server.page_size = shape.page_size
        self.agents.is_older = self.older.__contains__
        if shape.has_real_forecast:
            self.agents.forecaster = self._real_forecaster
        prepare(self)
        self.initial = {node["metadata"]["name"]: node for node in self.server.all("nodes")}
        for name in shape.names:
            self.agents.start(name)

    def _take_back(
        self, plural: str, name: str, namespace: str, edit: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        self.server.change(plural, name, edit, actor=GITOPS, namespace=namespace)

    def _real_forecaster(self, api: ClusterApi, _node: str) -> Forecaster:
        from tests.careen.chaos.fleet.forecasts import Real  # it loads numpy

        self.forecasts.append(Real(api))
        made: Forecaster = self.forecasts[-1]
        return made

    @property
    def now(self) -> float:
        return self.fleet.now

    def policy(self, name: str) -> Policy:
        """Deadlines are one or two minutes, so that stories are short."""
        policy = Policy(
            node_name=name,
            daemonset_namespace="careen",
            daemonset_name="careen",
            concurrency=self.shape.concurrency,
            budgets=self.shape.budgets,
            order=self.shape.order,
            reboot_deadline_seconds=120,
            verify_timeout_seconds=120,
            settle_timeout_seconds=120,
            failure_backoff_seconds=20,
            failure_backoff_limit_seconds=60,
            unknown_patience_seconds=60,
            pre_reboot_labels={"pool": "maintenance"},
        )
        return replace(policy, **self.settings.get(name, {}))

    def put_daemonset(self) -> None:
        self.server.put(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "careen", "namespace": "careen"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "careen:1"}]},
                    },
                },
                "status": {"desiredNumberScheduled": self.shape.nodes, "currentNumberScheduled": self.shape.nodes},
            },
            actor="person",
        )

    def touch_config_map(self) -> None:
        """Write the ConfigMap of the settings. A sleeping agent notices nothing else of a change of `settings`."""
        if self.server.get("configmaps", "careen", "careen") is None:
            self.server.put(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "careen", "namespace": "careen"}},
                actor="person",
            )
        else:
            self.server.change(
                "configmaps",
                "careen",
                lambda old: {**old, "data": {"changed": str(self.now)}},
                actor="person",
                namespace="careen",
            )

    # The story -----------------------------------------------------------------------------------------------

    async def all_need_a_reboot(self) -> None:
        await asyncio.sleep(6.0)
        for name in self.shape.names:
            self.fleet.hosts[name].needs_reboot()

    async def until_home(self, longest_seconds: float) -> None:
        """Wait until the roll-out is over, at most `longest_seconds`, and then 100 seconds for late writes."""
        end = self.now + longest_seconds
        while self.now < end:
            await asyncio.sleep(1.0)
            if self.is_home():
                self.home_at = self.now
                break
        await asyncio.sleep(100.0)  # late writes land now

    def is_home(self) -> bool:
        if any(host.has_need or not host.is_up or host.is_going_down for host in self.fleet.hosts.values()):
            return False
        marks = {"careen.dev/reboot", "careen.dev/phase", "careen.dev/reason", "careen.dev/progress"}
        return not self.lock().get("locks") and not any(
            marks & {*(node["metadata"].get("labels") or {}), *(node["metadata"].get("annotations") or {})}
            for node in self.server.all("nodes")
        )

    def lock(self) -> dict[str, Any]:
        found = self.server.get("daemonsets", "careen", "careen")
        text = ((found or {}).get("metadata", {}).get("annotations") or {}).get(LOCK)
        try:
            return dict(json.loads(text)) if text else {}
        except ValueError:
            return {"locks": ["garbage"]}

    def stop(self) -> None:
        for process in list(self.agents.processes):
            process.kill()

    def verdict(self, **leniency: Any) -> list[str]:
        return verdict(self, **leniency)

    def order(self, name: str) -> None:
        """Somebody changes the node's settings or its host's need, which may undo a drain."""
        self.orders.append((self.now, name))

    def note(self, text: str) -> None:
        """Add a line to the trace, which a failed test prints."""
        self.agents.trace.append(f"{self.now:8.2f} ---- {text}")

    def report(self, broken: list[str]) -> str:
        """The message of a failed test: the broken rules and the last lines of the trace."""
        return "\n".join([*broken, *(line[:500] for line in self.agents.trace[-250:])])

    def at(self, seconds: float, what: Callable[[], None]) -> None:
        self.fleet.later(seconds, what)
