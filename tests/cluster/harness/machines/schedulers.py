"""Runs `careen scheduler` with the rights and the configuration of manifests/scheduler, and knows which process made
which binding.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.harness.api import ApiError, Object
from tests.cluster.harness.machines.agents import CAREEN_PYTHONPATH, clean_environment
from tests.cluster.harness.machines.control_plane import REPOSITORY, ControlPlane
from tests.cluster.harness.machines.processes import Program, free_port
from tests.cluster.harness.measures.drains import apply
from tests.cluster.harness.measures.varied import node
from tests.patience import wait_until

NAME = "careen-scheduler"
PODS = "/api/v1/namespaces/shop/pods"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


class CareenScheduler:
    """One process, which runs from its construction on."""

    def __init__(
        self, schedulers: Schedulers, name: str, *, server: str = "", settings: Mapping[str, Any], words: Sequence[str]
    ) -> None:
        plane = schedulers.plane
        token = plane.service_account_token("careen", NAME)
        self.credential = _credential(token)
        config = schedulers.folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump(settings))
        kubeconfig = plane.kubeconfig(f"schedulers/{name}", token, server=server)
        self.port = free_port()
        self.program = Program(
            name,
            (
                *(sys.executable, "-m", "careen", "scheduler", "--config", str(config)),
                *("--kubeconfig", str(kubeconfig), "--metrics-port", str(self.port), "--identity", name, *words),
            ),
            guardian=plane.guardian,
            log=schedulers.folder / f"{name}.log",
            env={**clean_environment(), "PYTHONPATH": CAREEN_PYTHONPATH},
        )

    def has_said(self, words: str) -> bool:
        return words in self.program.log.read_text(errors="replace")

    def says(self, words: str) -> None:
        """Wait until the log contains the words."""
        wait_until(
            lambda: self.has_said(words) or self.program.exit_code() is not None,
            lambda: f"{words!r} in the log:\n{self.program.tail()}",
        )
        assert self.has_said(words), (
            f"{self.program.name} ended with {self.program.exit_code()}:\n{self.program.tail()}"
        )


_LOOK_SECONDS = 0.3
_MOST_LOOKS = 20


class Schedulers:
    """The ServiceAccount of manifests/scheduler with its rights, and all processes that use it."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self._running: list[CareenScheduler] = []
        self._log_from = plane.audit_log.stat().st_size if plane.audit_log.exists() else 0
        apply(plane.admin, [_namespace("careen"), _namespace("shop"), *manifests()])
        # The controllers make it, and pods without it are refused.
        wait_until(lambda: plane.admin.find("/api/v1/namespaces/shop/serviceaccounts/default") is not None)

    def start(
        self,
        name: str = "first",
        *,
        server: str = "",
        elects: bool = False,
        settings: Mapping[str, Any] | None = None,
        words: Sequence[str] = (),
    ) -> CareenScheduler:
        """`elects`: with the leader election of the manifests; without it, the process schedules at once. `settings`
        are added to the configuration of the manifests."""
        settings = {**configuration(), **(settings or {})}
        if not elects:
            settings["leaderElection"] = {"leaderElect": False}
        started = CareenScheduler(self, name, server=server, settings=settings, words=words)
        self._running.append(started)
        return started

    def close(self) -> None:
        """Kill the processes, and remove the Lease: the next test's scheduler should not wait for it."""
        for each in self._running:
            each.program.kill()
        self.plane.admin.delete("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/scheduler.careen.dev")

    # -- the cluster

    def nodes(self, count: int, *, cpus: int = 4) -> None:
        names = [f"n{number:03}" for number in range(count)]
        apply(self.plane.admin, [_node(name, cpus) for name in names])
        wait_until(
            lambda: not any(each["spec"].get("taints") for each in self.plane.admin.list("/api/v1/nodes")),
            lambda: "the node controller removes the taints of new nodes",
        )

    def pods(self, names: Iterable[str], **values: Any) -> None:
        for name in names:
            self.plane.admin.create(PODS, pod(name, **values))

    def delete(self, name: str) -> None:
        self.plane.admin.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def listed(self) -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in self.plane.admin.list(PODS)}

    def unbound(self) -> list[str]:
        return sorted(name for name, each in self.listed().items() if not each["spec"].get("nodeName"))

    def all_bound(self) -> None:
        """Wait until every pod has a node."""
        wait_until(lambda: not self.unbound(), lambda: f"pods without a node: {self.unbound()}\n{self._tails()}")

    def _tails(self) -> str:
        return "\n".join(f"-- {each.program.name}\n{each.program.tail()}" for each in self._running[-2:])

    def why_refused(self, path: str, body: Object) -> str:
        """Return why the API server refuses to create the object, or an empty text."""
        try:
            self.plane.admin.create(path, body)
        except ApiError as error:
            return str(error)
        return ""

    # -- what happened

    def requests(self) -> list[Object]:
        """The audit events of all processes' requests about objects, in their order. The API server writes an event
        after its answer, so this waits until the log stands still for a moment."""
        size = -1
        for _ in range(_MOST_LOOKS):
            if size == (size := self.plane.audit_log.stat().st_size):
                break
            time.sleep(_LOOK_SECONDS)
        return [
            each
            for each in self.plane.audit_events(self._log_from)
            if "objectRef" in each and each["user"]["username"] == f"system:serviceaccount:careen:{NAME}"
        ]

    def bindings(self) -> list[Object]:
        """The audit events of the bindings that the API server has accepted, in their order."""
        return [
            each
            for each in self.requests()
            if each["objectRef"].get("subresource") == "binding" and each["responseStatus"]["code"] < 300
        ]

    def judge(self) -> None:
        """No pod was bound twice, and no node has more than it can allocate."""
        many = Counter(
            (each["objectRef"]["name"], each["requestObject"]["metadata"].get("uid")) for each in self.bindings()
        )
        assert not [key for key, number in many.items() if number > 1], "pods were bound twice"
        self.no_node_is_too_full()

    def no_node_is_too_full(self) -> None:
        used: Counter[str] = Counter()
        for each in self.listed().values():
            if each["spec"].get("nodeName"):
                used[each["spec"]["nodeName"]] += int(each["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        room = {
            each["metadata"]["name"]: int(each["status"]["allocatable"]["cpu"])
            for each in self.plane.admin.list("/api/v1/nodes")
        }
        assert not {name: cpus for name, cpus in used.items() if cpus > room[name]}, (used, room)


def bound_by(binding: Object) -> str:
    """Return the credential of the process that made the binding."""
    return str(binding["user"]["extra"][_CREDENTIAL][0])


def manifests(*, with_deployment: bool = False) -> list[Object]:
    """Return the component's objects, and the ClusterRole that it shares with the shadow."""
    people = yaml.safe_load_all((REPOSITORY / "manifests" / "people.yaml").read_text())
    items = [each for each in people if each["metadata"]["name"] == "careen-shadow"]
    items += yaml.safe_load_all((REPOSITORY / "manifests" / "scheduler" / "scheduler.yaml").read_text())
    return [each for each in items if with_deployment or each["kind"] != "Deployment"]


def configuration() -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration of the manifests."""
    (text,) = (each["data"]["scheduler.yaml"] for each in manifests() if each["kind"] == "ConfigMap")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def pod(name: str, *, cpu: int = 1, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """Return the manifest of a pod that names the scheduler."""
    requests = {"cpu": str(cpu), "memory": "64Mi"}
    container = {"name": "web", "image": "example.com/web:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": dict(labels or {})},
        "spec": {"schedulerName": NAME, "containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def condition(found: Object) -> Object:
    """Return the pod's condition PodScheduled, or an empty object."""
    return next((each for each in found["status"].get("conditions", ()) if each["type"] == "PodScheduled"), {})


def _node(name: str, cpus: int) -> Object:
    return node(name, zone=f"zone-{name[-1]}", cpus=cpus, memory_gib=64, labels={}, taints=[], images=[])


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _credential(token: str) -> str:
    payload = token.split(".")[1]
    return f"JTI={json.loads(base64.urlsafe_b64decode(payload + '=' * (-len(payload) % 4)))['jti']}"
