"""Runs the citizens of `drydock.zoo` on virtual time, with the controllers, a scheduler and kubelets for their
namespace. `workloads.py` simulates the pods of the fleet's own namespace, and ends the pods of both."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from drydock.controllers import budgets, daemon_sets, deployments, garbage, replica_sets, stateful_sets
from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_active, is_going
from drydock.hosts.kubelets import can_start, start_seconds
from drydock.server.evictions import pod_is_ready
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.selectors import label_selector_from_object
from drydock.server.store import Content, Storage, Store, Stored
from drydock.server.verbs import Verbs
from drydock.zoo import Settler
from drydock.zoo.citizen import (
    NAMESPACE,
    Citizen,
    Habitat,
    is_up,
    node_named,
    pods_of_the_zoo,
    write_pod_status,
)
from drydock.zoo.volumes import home_of
from tests.careen.chaos.fleet.machines import Fleet
from tests.careen.chaos.fleet.small_server import SmallServer

_SCHEDULER, _KUBELET = "system:kube-scheduler", "system:kubelet"
_CONTROLLERS = (
    deployments.CONTROLLER,
    replica_sets.CONTROLLER,
    stateful_sets.CONTROLLER,
    daemon_sets.CONTROLLER,
    budgets.CONTROLLER,
    garbage.CONTROLLER,
)
_PAUSE_SECONDS = 0.03
_LONGEST_BEGINNING = 200


def _tolerates(pod: Content, node: Content) -> bool:
    """A toleration of the zoo tolerates everything."""
    closed = node["spec"].get("unschedulable") or any(
        each["effect"] == "NoSchedule" for each in node["spec"].get("taints") or ()
    )
    return not closed or {"operator": "Exists"} in (pod["spec"].get("tolerations") or ())


class _Enclosure:
    """The store, with the objects of the zoo's namespace and of the cluster only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def items(self, storage: Storage, namespace: str = "") -> list[Stored]:
        found = self._store.items(storage, namespace)
        return [each for each in found if each.key[0] in ("", NAMESPACE)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _EnclosedVerbs(Verbs):
    def __init__(self, verbs: Verbs) -> None:
        self.__dict__.update(verbs.__dict__)
        self.store = _Enclosure(verbs.store)  # type: ignore[assignment]


class Zoo:
    """All citizens of a world. Without one, it does nothing."""

    def __init__(self, server: SmallServer, fleet: Fleet, seed: int) -> None:
        self.citizens: list[Citizen] = []
        self.broken: set[str] = set()
        """Values of the label `app`: pods that start from now on never become ready."""
        self._fleet = fleet
        self._verbs: Verbs = _EnclosedVerbs(server.verbs)
        self._chance = random.Random(f"{seed} zoo")
        self._controllers: list[Controller] = []
        self._under_way: set[tuple[str, int]] = set()
        self._ready_in: dict[str, int] = {}

    @property
    def verbs(self) -> Verbs:
        return self._verbs

    def habitat(self) -> Habitat:
        return Habitat(nodes=tuple(self._fleet.hosts), chance=self._chance)

    def settle(self, settlers: Iterable[Settler]) -> None:
        """Add citizens, and let them begin: their pods are ready at the end of this instant."""
        arrived = [settler(self.habitat()) for settler in settlers]
        if not arrived:
            return
        own = Controller(name="scheduler and kubelets", watches=("pods", "nodes"), reconcile=self._run_pods)
        first = () if self.citizens else (*_CONTROLLERS, own)
        for citizen in arrived:
            citizen.settle(self._verbs)
        fresh = [*(each for citizen in arrived for each in citizen.controllers), *first]
        self.citizens += arrived
        self._controllers += fresh
        self._begin()
        for controller in fresh:
            self._run(controller)

    def series(self, verbs: Verbs) -> list[Any]:
        return [each for citizen in self.citizens for each in citizen.series(verbs)]

    def _begin(self) -> None:
        """Call all controllers in turn until they change nothing more."""
        for _ in range(_LONGEST_BEGINNING):
            before = self._verbs.store.version
            for controller in self._controllers:
                controller.reconcile(self._verbs)
            for pod in pods_of_the_zoo(self._verbs):
                self._bind(pod)
            for pod in pods_of_the_zoo(self._verbs):
                if pod["spec"].get("nodeName") and is_active(pod) and self._may_start(pod) and not pod_is_ready(pod):
                    self._start(pod)
            if self._verbs.store.version == before:
                return
        raise AssertionError("the zoo's controllers do not come to rest")

    def _run(self, controller: Controller) -> None:
        """Call the controller soon after a change of its kinds, and when it asks for it."""
        due: list[float] = []

        def wake(seconds: float = _PAUSE_SECONDS) -> None:
            at = self._fleet.now + seconds
            if not due or at < min(due):
                due.append(at)
                self._fleet.later(seconds, lambda: act(at))

        def act(at: float) -> None:
            if at not in due:
                return
            due.clear()
            again = controller.reconcile(self._verbs)
            if again is not None:
                wake(max(again, _PAUSE_SECONDS))

        self._verbs.store.listen([resource_named(plural).storage for plural in controller.watches], wake)
        wake()

    # Scheduler and kubelets ----------------------------------------------------------------------------------

    def _run_pods(self, verbs: Verbs) -> None:
        for pod in pods_of_the_zoo(verbs):
            node = pod["spec"].get("nodeName", "")
            if not is_active(pod):
                continue
            if not node:
                self._later(0.05, 0.5, pod, self._bind)
            elif node_named(verbs, node) is None:
                continue
            elif not is_up(verbs, node):
                self._not_ready(pod)
            elif self._ready_in.get(pod["metadata"]["uid"]) != self._boot_of(node):
                self._not_ready(pod)
                shortest = start_seconds(pod)
                self._later(shortest, shortest + 2.0, pod, self._start)

    def _later(self, shortest: float, longest: float, pod: Content, act: Callable[[Content], None]) -> None:
        key = (pod["metadata"]["name"], pod["metadata"]["uid"])
        mark = (pod["metadata"]["uid"], self._boot_of(pod["spec"].get("nodeName", "")))
        if mark in self._under_way:
            return
        self._under_way.add(mark)

        def now() -> None:
            self._under_way.discard(mark)
            found = self._verbs.store.get(PODS.storage, (NAMESPACE, key[0]))
            if found is not None and found.content["metadata"]["uid"] == key[1] and is_active(found.content):
                act(found.content)
                if not found.content["spec"].get("nodeName") and self._is_unbound(*key):
                    self._later(1.0, 3.0, pod, act)

        self._fleet.later(self._chance.uniform(shortest, longest), now)

    def _is_unbound(self, name: str, uid: str) -> bool:
        found = self._verbs.store.get(PODS.storage, (NAMESPACE, name))
        return (
            found is not None and found.content["metadata"]["uid"] == uid and not found.content["spec"].get("nodeName")
        )

    def _boot_of(self, node: str) -> int:
        return self._fleet.hosts[node].boot if node in self._fleet.hosts else 0

    def _bind(self, pod: Content) -> None:
        """Bind the pod to the node with the fewest pods of its label `app`, if a node suits."""
        if pod["spec"].get("nodeName") or is_going(pod):
            return
        places = [node for node in self._fleet.hosts if self._suits(pod, node)]
        if places:
            crowd = {node: len(self._neighbours(node, {"app": pod["metadata"]["labels"]["app"]})) for node in places}
            best = [node for node in places if crowd[node] == min(crowd.values())]
            target = {"target": {"name": self._chance.choice(best)}}
            self._verbs.bind(NAMESPACE, pod["metadata"]["name"], target, actor=_SCHEDULER)

    def _suits(self, pod: Content, name: str) -> bool:
        node, host = node_named(self._verbs, name), self._fleet.hosts[name]
        if node is None or not host.is_up or host.is_going_down or not _tolerates(pod, node):
            return False
        if home_of(self._verbs, pod) not in ("", name):
            return False
        labels = node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
            return False
        apart = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or ()
        return not any(self._neighbours(name, each["labelSelector"]["matchLabels"]) for each in apart)

    def _neighbours(self, node: str, labels: dict[str, str]) -> list[Content]:
        matches = label_selector_from_object({"matchLabels": labels})
        return [
            each
            for each in pods_of_the_zoo(self._verbs)
            if each["spec"].get("nodeName") == node and is_active(each) and matches(each["metadata"]["labels"])
        ]

    def _may_start(self, pod: Content) -> bool:
        return can_start(pod) and pod["metadata"]["labels"].get("app") not in self.broken

    def _start(self, pod: Content) -> None:
        node = pod["spec"]["nodeName"]
        if is_up(self._verbs, node) and self._fleet.hosts[node].is_up and self._may_start(pod):
            self._ready_in[pod["metadata"]["uid"]] = self._boot_of(node)
            self._report(pod, is_ready=True)

    def _not_ready(self, pod: Content) -> None:
        if pod_is_ready(pod):
            self._report(pod, is_ready=False)

    def _report(self, pod: Content, *, is_ready: bool) -> None:
        others = [each for each in pod["status"].get("conditions") or () if each["type"] != "Ready"]
        conditions = [*others, {"type": "Ready", "status": "True" if is_ready else "False"}]
        write_pod_status(self._verbs, pod, {"phase": "Running", "conditions": conditions}, actor=_KUBELET)
