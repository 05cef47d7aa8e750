"""What stands behind the API objects of a simulated fleet: computers, their kubelets, and the controllers of
their pods."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from careen.core.facts.observation import Need, NeedAnswer, SelfTest, Unknown
from careen.host import reboot
from drydock.checker.evidence import HostEvent
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions
from tests.careen.chaos.fleet.small_server import SmallServer

APPS = ("web", "db")
_PODS = resource_named("pods")
_KUBELET, _CONTROLLER = "system:node", "system:controller"


@dataclass(kw_only=True)
class Host:
    """One computer, as its agent and the world's laws see it."""

    name: str
    fleet: Fleet
    boot: int = 1
    booted_at: float = -100.0
    is_up: bool = True
    has_need: bool = False
    need_survives: int = 0  # how many reboots the need outlives
    behaviour: str = "works"  # works, fails, silent: what the reboot command does
    is_going_down: bool = False
    is_sentinel_readable: bool = True

    @property
    def boot_id(self) -> str:
        return f"boot-{self.name}-{self.boot}"

    async def read_need(self) -> Need:
        if not self.is_sentinel_readable:
            return Need(answer=NeedAnswer.UNKNOWN, detail="stale file handle")
        return Need(answer=NeedAnswer.YES if self.has_need else NeedAnswer.NO)

    def read_boot_id(self) -> str | Unknown:
        return self.boot_id

    def uptime(self) -> float:
        return self.fleet.now - self.booted_at

    async def test_reboot(self) -> SelfTest:
        return SelfTest()

    async def ask_reboot(self) -> reboot.Answer:
        self.fleet.log_host(self, "asked")
        if self.behaviour != "works":
            self.fleet.log_host(self, "ignored")
        if self.behaviour == "fails":
            return reboot.Refused("the reboot command failed with exit code 1")
        if self.behaviour == "works":
            self.fleet.begin_reboot(self)
        return reboot.Asked()

    def needs_reboot(self) -> None:
        if not self.has_need:
            self.has_need = True
            self.fleet.log_host(self, "need")


class Fleet:
    """Hosts with their Nodes and pods on one server; everything about chance comes from the seed."""

    def __init__(self, server: SmallServer, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self.server = server
        self.hosts: dict[str, Host] = {}
        self.log: list[HostEvent] = []
        self.labels: dict[str, dict[str, str]] = {}
        self.on_down: Callable[[str], None] = lambda _: None
        self.on_up: Callable[[str], None] = lambda _: None
        self.slowness = 1.0
        self.shutdown_seconds = (0.1, 4.0)
        self._loop = loop
        self._chance = chance
        self._serial = 0
        self._ending: set[str] = set()
        self._jobs: dict[str, str] = {}  # by name: how it ends
        server.store.listen([_PODS.storage], self._on_pods)

    @property
    def now(self) -> float:
        return self._loop.time()

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._loop.call_later(seconds, what)

    def log_host(self, host: Host, what: str) -> None:
        self.log.append(HostEvent(at=self.now, host=host.name, what=what, boot_id=host.boot_id))

    # Nodes and their kubelets --------------------------------------------------------------------------------

    def add_host(self, name: str, labels: dict[str, str]) -> Host:
        self.hosts[name] = Host(name=name, fleet=self)
        self.labels[name] = {"kubernetes.io/hostname": name, **labels}
        self.register(name)
        return self.hosts[name]

    def register(self, name: str) -> None:
        """The kubelet makes its Node, and its daemons come."""
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
        self._place_daemon(name)

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
            boot = host.boot
            self.later(self._chance.uniform(*self.shutdown_seconds), lambda: self._go_down(host, boot))

    def lose_power(self, name: str) -> None:
        """Down without anybody having asked."""
        host = self.hosts[name]
        self._go_down(host, host.boot, "down" if host.is_going_down else "lost")

    def _go_down(self, host: Host, boot: int, what: str = "down") -> None:
        if not host.is_up or host.boot != boot:
            return
        host.is_up = False
        self.log_host(host, what)
        self.on_down(host.name)
        self.later(self._chance.uniform(0.1, 6.0), lambda: self._miss(host))
        self.later(self._chance.uniform(3.0, 15.0) * self.slowness, lambda: self._come_up(host))

    def _miss(self, host: Host) -> None:
        if not host.is_up:
            self.report(host.name, ready=False)

    def _come_up(self, host: Host) -> None:
        host.boot, host.booted_at, host.is_up, host.is_going_down = host.boot + 1, self.now, True, False
        if host.need_survives:
            host.need_survives -= 1
        else:
            host.has_need = False
        self.log_host(host, "booted")
        self._daemon_ready(host.name, is_ready=False)
        self.later(self._chance.uniform(0.1, 5.0), lambda: self._kubelet_up(host, host.boot))
        self.later(self._chance.uniform(0.1, 6.0), lambda: self.on_up(host.name) if host.is_up else None)

    def _kubelet_up(self, host: Host, boot: int) -> None:
        if not host.is_up or host.boot != boot:
            return
        self.register(host.name)
        self.report(host.name, ready=True)
        self.log_host(host, "ready")
        self.later(self._chance.uniform(0.1, 3.0), lambda: self._daemon_ready(host.name, is_ready=True))

    # Pods and their controllers ------------------------------------------------------------------------------

    def add_workloads(self, replicas: int) -> None:
        for app in APPS:
            self.server.put(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {"name": app, "namespace": "shop", "uid": f"uid-{app}", "generation": 1},
                    "spec": {
                        "replicas": replicas,
                        "selector": {"matchLabels": {"app": app}},
                        "template": {"metadata": {"labels": {"app": app}}, "spec": {}},
                    },
                    "status": {"replicas": replicas, "readyReplicas": replicas},
                }
            )
            for name in list(self.hosts) * (replicas // len(self.hosts)):
                self._place(app, name, is_ready=True)

    def _place_daemon(self, name: str) -> None:
        if self.server.get("pods", f"net-{name}", "shop") is None:
            self._put_pod(f"net-{name}", name, kind="DaemonSet", owner="net", is_ready=True)

    def _daemon_ready(self, name: str, *, is_ready: bool) -> None:
        self._pod_ready(f"net-{name}", is_ready=is_ready)

    def add_crashing_daemon(self, name: str) -> None:
        """Its pod on this node was never ready and never will be."""
        self._put_pod(f"crash-{name}", name, kind="DaemonSet", owner="crash", is_ready=False)

    def add_job(self, node: str, ends: str) -> None:
        """A Job with a pod on this node. Evicted, it `completes` on another node, `fails` for good, or is
        `cleared` away when it is through."""
        self._serial += 1
        name = f"job-{self._serial}"
        self._jobs[name] = ends
        self.server.put(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1},
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "backoffLimit": 0 if ends == "fails" else 6,
                    "template": {"metadata": {"labels": {"app": name}}, "spec": {}},
                },
                "status": {"active": 1, "ready": 1},
            },
            actor=_CONTROLLER,
        )
        self._put_pod(f"{name}-{self._serial}", node, kind="Job", owner=name, is_ready=True)

    def _job_lost_its_pod(self, name: str) -> None:
        if self._jobs[name] == "fails":
            self._end_job(name, "Failed", {"failed": 1})
        else:
            self._job_status(name, {"active": 0, "ready": 0})
            self.later(self._chance.uniform(0.05, 1.0), lambda: self._replace_pod_of_job(name))

    def _replace_pod_of_job(self, name: str) -> None:
        places = [
            node["metadata"]["name"]
            for node in self.server.all("nodes")
            if not node["spec"].get("unschedulable") and self._is_up(node["metadata"]["name"])
        ]
        if not places:
            self.later(2.0, lambda: self._replace_pod_of_job(name))
            return
        self._serial += 1
        pod = f"{name}-{self._serial}"
        self._put_pod(pod, self._chance.choice(places), kind="Job", owner=name, is_ready=False)
        self.later(self._chance.uniform(0.3, 3.0), lambda: self._job_pod_ready(name, pod))
        self.later(self._chance.uniform(3.0, 40.0), lambda: self._job_pod_completes(name, pod))

    def _job_pod_ready(self, name: str, pod: str) -> None:
        self._pod_ready(pod, is_ready=True)
        self._job_status(name, {"active": 1, "ready": 1})

    def _job_pod_completes(self, name: str, pod: str) -> None:
        if (found := self.server.get("pods", pod, "shop")) is None or "deletionTimestamp" in found["metadata"]:
            return
        self.server.change(
            "pods",
            pod,
            lambda old: {**old, "status": _pod_status(is_ready=False, phase="Succeeded")},
            actor=_KUBELET,
            namespace="shop",
            subresource="status",
        )
        self._end_job(name, "Complete", {"succeeded": 1})

    def _end_job(self, name: str, condition: str, counts: dict[str, int]) -> None:
        self._job_status(name, {"ready": 0, **counts, "conditions": [{"type": condition, "status": "True"}]})
        if self._jobs[name] == "cleared":
            self.later(1.0, lambda: self.server.remove("jobs", name, actor=_CONTROLLER, namespace="shop"))

    def _job_status(self, name: str, status: dict[str, Any]) -> None:
        self.server.change(
            "jobs",
            name,
            lambda old: {**old, "status": status},
            actor=_CONTROLLER,
            namespace="shop",
            subresource="status",
        )

    def _place(self, app: str, node: str, *, is_ready: bool) -> None:
        self._serial += 1
        name = f"{app}-{self._serial}"
        self._put_pod(name, node, kind="ReplicaSet", owner=app, is_ready=is_ready)
        if not is_ready:
            self.later(self._chance.uniform(0.3, 3.0), lambda: self._pod_ready(name, is_ready=True))

    def _put_pod(self, name: str, node: str, *, kind: str, owner: str, is_ready: bool) -> None:
        reference = {
            "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
            "kind": kind,
            "name": owner,
            "uid": f"uid-{owner}",
            "controller": True,
        }
        self.server.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "shop",
                    "labels": {"app": owner},
                    "ownerReferences": [reference],
                },
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{"name": "c", "image": "i"}],
                },
                "status": _pod_status(is_ready=is_ready),
            },
            actor=_CONTROLLER,
        )

    def _pod_ready(self, name: str, *, is_ready: bool) -> None:
        self.server.change(
            "pods",
            name,
            lambda old: {**old, "status": _pod_status(is_ready=is_ready)},
            actor=_KUBELET,
            namespace="shop",
            subresource="status",
        )

    def _on_pods(self) -> None:
        change = self.server.store.journal[-1]
        if change.after is None:
            self._ending.discard(change.before.content["metadata"]["uid"] if change.before else "")
            self._gone(change.before.content if change.before else {})
        elif (
            "deletionTimestamp" in change.after.content["metadata"]
            and (uid := change.after.content["metadata"]["uid"]) not in self._ending
        ):
            self._ending.add(uid)
            self.later(self._chance.uniform(0.1, 5.0), lambda: self._end(change.key, uid))
        self.later(0.0, self._count)

    def _end(self, key: tuple[str, str], uid: str) -> None:
        found = self.server.store.get(_PODS.storage, key)
        if found is not None and found.content["metadata"]["uid"] == uid:
            self.server.verbs.delete(_PODS, *key, DeleteOptions(grace_seconds=0), actor=_KUBELET)

    def _gone(self, pod: Any) -> None:
        owner = pod["metadata"]["ownerReferences"][0]
        if owner["kind"] == "ReplicaSet":
            self.later(self._chance.uniform(0.05, 1.0), lambda: self._replace(owner["name"]))
        elif owner["name"] in self._jobs and pod["status"]["phase"] == "Running":
            self._job_lost_its_pod(owner["name"])

    def _replace(self, app: str) -> None:
        places = [
            node["metadata"]["name"]
            for node in self.server.all("nodes")
            if not node["spec"].get("unschedulable") and self._is_up(node["metadata"]["name"])
        ]
        if places:
            self._place(app, self._chance.choice(places), is_ready=False)
        else:
            self.later(2.0, lambda: self._replace(app))

    def _is_up(self, name: str) -> bool:
        return name in self.hosts and self.hosts[name].is_up and not self.hosts[name].is_going_down

    def _count(self) -> None:
        for app in APPS:
            ready = sum(
                1 for pod in self.server.all("pods") if pod["metadata"]["labels"]["app"] == app and _serves(pod)
            )
            stands = self.server.get("replicasets", app, "shop")
            if stands is not None and stands["status"].get("readyReplicas") != ready:
                self.server.change(
                    "replicasets",
                    app,
                    lambda old, ready=ready: {**old, "status": {**old["status"], "readyReplicas": ready}},
                    actor=_CONTROLLER,
                    namespace="shop",
                    subresource="status",
                )

    def collect_pods_of(self, name: str) -> None:
        """The garbage collector, after a Node is gone."""
        if self.server.get("nodes", name) is None:
            for pod in self.server.all("pods"):
                if pod["spec"]["nodeName"] == name:
                    self.server.remove("pods", pod["metadata"]["name"], actor=_CONTROLLER, namespace="shop")


def _serves(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["conditions"][0]["status"] == "True"


def _node_status(host: Host, *, ready: bool) -> dict[str, Any]:
    return {
        "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        "nodeInfo": {"bootID": host.boot_id},
    }


def _pod_status(*, is_ready: bool, phase: str = "Running") -> dict[str, Any]:
    return {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}
