"""A cluster with simulated hosts: control plane, applied manifests, observer and hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from drydock.rollout.patience import TimeLimit
from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.machines.control_plane import REPOSITORY, ControlPlane
from tests.cluster.harness.machines.hosts import AgentCommand, Fleet, Host
from tests.cluster.harness.observer import Observer
from tests.cluster.harness.workloads import SHOP, path_of

LOCK_ANNOTATION = "weave.works/kured-node-lock"
AT_ONCE: Object = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
"""The DeleteOptions of a deletion that does not wait for a kubelet."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The names of the agents' DaemonSet, whose annotation is the lock, and of the agents' ServiceAccount."""

    namespace: str
    daemonset: str
    account: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/daemonsets/{self.daemonset}"


CAREEN = Identity(namespace="careen", daemonset="careen", account="careen")
KURED = Identity(namespace="kube-system", daemonset="kured", account="kured")


class Cluster:
    """The control plane of one test, with the observer and the simulated hosts. `close` ends the agents and the
    observer, and `sweep` empties the cluster.
    """

    def __init__(self, plane: ControlPlane, identity: Identity, folder: Path) -> None:
        self.plane = plane
        self.identity = identity
        self.folder = folder
        self.observer = Observer(
            plane.client, daemonset=(identity.namespace, identity.daemonset), lock_annotation=LOCK_ANNOTATION
        )
        self.fleet: Fleet | None = None
        self.journal_from = plane.audit_log.stat().st_size if plane.audit_log.exists() else 0
        """The byte of the audit log at which this test's journal begins."""

    @property
    def admin(self) -> Api:
        return self.plane.admin

    # -- putting things on the cluster

    def apply(self, *items: Object) -> None:
        """Create missing objects, and patch existing objects with their manifests."""
        for item in items:
            try:
                self.admin.create(path_of(item), item)
            except ApiError as error:
                if error.status != 409:
                    raise
                self.admin.patch(f"{path_of(item)}/{item['metadata']['name']}", item)

    def apply_file(self, path: Path) -> None:
        self.apply(*(item for item in yaml.safe_load_all(path.read_text()) if item))

    def start_fleet(self, hosts: Iterable[Host], command: AgentCommand) -> Fleet:
        """Register a node for each host. Start an agent on each node as soon as its DaemonSet pod runs."""
        self.fleet = Fleet(
            lambda: self.plane.admin,
            self.observer,
            command,
            guardian=self.plane.guardian,
            token=self._token,
        )
        for host in hosts:
            self.fleet.add(host)
        return self.fleet

    def _token(self, host: Host) -> str:
        """Return a token that is bound to the pod of the host's agent, like the token that a kubelet mounts into the
        pod.
        """
        bound = {"apiVersion": "v1", "kind": "Pod", "name": host.agent_pod_name, "uid": host.agent_pod}
        return self.plane.service_account_token(self.identity.namespace, self.identity.account, bound_to=bound)

    # -- waiting

    def wait_for(self, sentence: str, condition: Callable[[], T | None], seconds: float = 60) -> T:
        """Wait until `condition` returns a true value, and return this value. If the time runs out, raise an error that
        contains `sentence` (the expected state, such as "the node is cordoned") and the last log lines of the agents.
        """
        patience = TimeLimit(seconds)  # seconds of an otherwise idle machine: a slow machine makes stories slow
        while True:
            try:
                if answer := condition():
                    return answer
            except ApiError as error:
                sentence_now = f"{sentence} ({error})"
            else:
                sentence_now = sentence
            if patience.is_over():
                raise AssertionError(
                    f"after {patience.waited}, this is still not true: {sentence_now}\n{self.describe()}"
                )
            self.plane.check()
            time.sleep(0.1)

    def describe(self) -> str:
        """Return the state of nodes and lock, and the last log lines of each agent, for the message of a failed
        test.
        """
        rows = []
        for name in sorted(self.fleet.hosts if self.fleet else ()):
            node = self.observer.node(name)
            if node is None:
                rows.append(f"{name}: no such node")
                continue
            ours = {
                key: value
                for key, value in {**node.labels, **node.annotations}.items()
                if key.startswith("careen.dev/")
            }
            rows.append(f"{name}: ready={node.ready} unschedulable={node.unschedulable} taints={node.taints} {ours}")
        rows.append(f"lock: {self.observer.lock_now().text}")
        for name, host in sorted(self.fleet.hosts.items() if self.fleet else ()):
            rows.append(
                f"--- {name}: reboots {len(host.reboots)}, crashes {host.crashes}, up {host.up}; its agent said:"
            )
            rows += host.log.read_text(errors="replace").splitlines()[-12:] if host.log.exists() else ["(nothing)"]
        return "\n".join(rows)

    def pods_are_ready(self, namespace: str = SHOP) -> bool:
        """Whether every workload in the namespace has all of its pods, and whether all these pods are ready."""
        for kind in ("deployments", "statefulsets"):
            for item in self.admin.list(f"/apis/apps/v1/namespaces/{namespace}/{kind}"):
                status = item.get("status", {})
                if status.get("observedGeneration", 0) < item["metadata"]["generation"]:
                    return False
                if (
                    status.get("readyReplicas", 0) != item["spec"]["replicas"]
                    or status.get("replicas", 0) != item["spec"]["replicas"]
                ):
                    return False
        for item in self.admin.list(f"/apis/apps/v1/namespaces/{namespace}/daemonsets"):
            status = item.get("status", {})
            if status.get("numberReady", -1) != len(self.observer.nodes):
                return False
        return True

    def agents_run(self) -> bool:
        assert self.fleet is not None
        return all(host.agent is not None for host in self.fleet.hosts.values() if host.agent_wanted and host.up)

    # -- ending

    def close(self) -> None:
        if self.fleet is not None:
            self.fleet.close()
        self.observer.close()

    def sweep(self) -> None:
        """Remove workloads, agents' objects and nodes, so that the next test starts with an empty cluster."""
        admin = self.admin
        for kind in ("deployments", "statefulsets", "daemonsets", "replicasets"):
            admin.delete(f"/apis/apps/v1/namespaces/{SHOP}/{kind}", AT_ONCE)
        for kind in ("cronjobs", "jobs"):
            admin.delete(f"/apis/batch/v1/namespaces/{SHOP}/{kind}", AT_ONCE)
        admin.delete(f"/apis/policy/v1/namespaces/{SHOP}/poddisruptionbudgets", AT_ONCE)
        for identity in (CAREEN, KURED):
            admin.delete(identity.path, AT_ONCE)
        try:
            self.wait_for("the cluster is empty", lambda: not self._delete_remaining())
        except AssertionError as error:
            raise AssertionError(f"{error}\nstill there: {self._delete_remaining()}") from error
        admin.delete("/api/v1/namespaces/default/events", AT_ONCE)

    def _delete_remaining(self) -> list[str]:
        """Delete the remaining pods and nodes. Return the names of the pods, nodes and DaemonSets that still existed.

        `sweep` repeats this call until nothing remains. After `sweep` has deleted a workload, a controller with an old
        cache may create another pod of this workload. The next call deletes this pod too. Without the next call, the
        API server would keep this pod for a minute, because the pod's node no longer exists.
        """
        admin = self.admin
        pods = [pod["metadata"] for pod in admin.list("/api/v1/pods")]
        nodes = [node["metadata"] for node in admin.list("/api/v1/nodes")]
        for meta in pods:
            admin.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", AT_ONCE)
        if nodes:
            admin.delete("/api/v1/nodes", AT_ONCE)
        daemonsets = [item["metadata"] for item in admin.list("/apis/apps/v1/daemonsets")]
        return [meta["name"] for meta in (*pods, *nodes, *daemonsets)]


def manifest_files() -> list[Path]:
    """Return the files that `kubectl apply -k manifests` applies, in the order of the kustomization."""
    folder = REPOSITORY / "manifests"
    return [folder / name for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]]
