"""The parts of a test on real nodes: installation, actions on the machines, conditions to wait for, final checks."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from drydock.rollout.patience import TimeLimit
from tests.cluster.harness.api import ApiError, Object
from tests.cluster.harness.cluster import CAREEN, KURED, LOCK_ANNOTATION, Identity
from tests.cluster.harness.observer import NodeSeen, Observer, PodLife
from tests.cluster.harness.rules import broken, journal_of, not_cleaned_up
from tests.cluster.harness.workloads import SHOP, budget, path_of
from tests.nodes.harness.lab import Lab
from tests.nodes.harness.machine import Machine
from tests.nodes.harness.paths import REPOSITORY
from tests.nodes.harness.rules import budget_was_kept, left_without_eviction, rebooted_often
from tests.nodes.harness.workloads import web

_IMAGE = "careen.invalid/careen"
T = TypeVar("T")


# Awake, or asleep with that command line at its end.
AGENT = "^/opt/careen/bin/python[0-9.]* (-I -S .* -- [^ ]* )?/(opt/careen|usr)/bin/(careen|kured)"


class Story:
    """A test on real nodes. At its start, the nodes are Ready and nothing is installed. `close` restores that state."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.machines = lab.machines
        self.identity: Identity = CAREEN
        self.observer = self._observe(CAREEN)
        self._journal_from = lab.plane.audit_log.stat().st_size
        paths = {"nodes": "/api/v1/nodes", "pods": "/api/v1/pods", "daemonsets": "/apis/apps/v1/daemonsets"}
        self._known = [(plural, item) for plural, path in paths.items() for item in lab.plane.admin.list(path)]
        self._booted_before = {name: seen.boot_id for name, seen in self._nodes().items()}
        for machine in self.machines:
            machine.reboots.clear()
            machine.crashes.clear()

    # -- the stage

    def install(self, *components: str, flags: Sequence[str] = (), tag: str = "0.1.0", **settings: Any) -> None:
        """Apply the manifests with these components, and return when every agent is Ready."""
        self.apply(*components, flags=flags, tag=tag, **settings)
        self.agents_are_ready()

    def apply(self, *components: str, flags: Sequence[str] = (), tag: str = "0.1.0", **settings: Any) -> str:
        """Apply the manifests with these components without waiting. Return kubectl's output."""
        return self.lab.kubectl("apply", "-k", str(self._overlay(components, flags, tag, settings)))

    def agents_are_ready(self) -> None:
        self.wait_for("every agent is Ready", self._agents_are_ready)

    def install_as_kured(self) -> None:
        """Apply kured's own manifests, in which only the image is changed, and return when every agent is Ready."""
        self.acts_as(KURED)
        for name in ("kured-rbac.yaml", "kured-ds.yaml"):
            text = (REPOSITORY / "tests" / "cluster" / "kured" / name).read_text()
            self.lab.kubectl("apply", "-f", "-", given=re.sub(r"ghcr.io/kubereboot/kured:\S+", f"{_IMAGE}:0.1.0", text))
        self.agents_are_ready()

    def workloads(self, *items: Object) -> None:
        """Create the given workloads, and four pods `web` with a budget that allows one unavailable pod. Return when
        all pods are ready."""
        if not self.lab.plane.admin.find(f"/api/v1/namespaces/{SHOP}"):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        self.create(web(), budget("web", max_unavailable=1), *items)
        self.wait_for("every workload is ready", self.workloads_are_ready)

    def create(self, *items: Object) -> None:
        for item in items:
            self.lab.plane.admin.create(path_of(item), item)

    def acts_as(self, identity: Identity) -> None:
        """Let the observer watch the lock and the pods of this DaemonSet. The observer forgets its earlier records."""
        self.observer.close()
        self.identity = identity
        self.observer = self._observe(identity)

    # -- events

    def want_reboot(self, machines: Iterable[Machine] | None = None) -> None:
        for machine in self.machines if machines is None else machines:
            machine.want_reboot()

    def kill_agent(self, machine: Machine) -> bool:
        """Kill the first process of the agent's container. The kubelet starts the container again. Return False if
        there is no process.
        """
        try:
            pids = machine.run("pgrep", "--full", AGENT, check=False).split()
        except LookupError:  # the machine is down
            return False
        return bool(pids) and bool(machine.run("sh", "-c", f"kill -KILL {pids[0]} && echo killed", check=False))

    def agent_pod(self, machine: Machine) -> Object:
        label = f"name={self.identity.daemonset}"
        path = f"/api/v1/namespaces/{self.identity.namespace}/pods"
        found = self.lab.plane.admin.list(path, labelSelector=label, fieldSelector=f"spec.nodeName={machine.name}")
        assert found, f"no agent's pod on {machine.name}"
        return found[0]

    def in_agent(self, machine: Machine, program: str, *arguments: str) -> str:
        """Run a Python program in the agent's container, and return its output."""
        name = self.agent_pod(machine)["metadata"]["name"]
        words = ("exec", "-n", self.identity.namespace, name, "--", "/opt/careen/bin/python", "-c", program, *arguments)
        return self.lab.kubectl(*words)

    # -- queries

    def node(self, machine: Machine) -> NodeSeen:
        seen = self.observer.node(machine.name)
        assert seen is not None, f"no Node {machine.name}"
        return seen

    def phase(self, machine: Machine) -> str:
        return self.node(machine).annotations.get("careen.dev/phase", "Idle")

    def rebooted(self, machine: Machine) -> bool:
        return self.node(machine).boot_id != self._booted_before[machine.name]

    def holders(self) -> tuple[str, ...]:
        return self.observer.lock_now().holders

    def is_home(self, machine: Machine) -> bool:
        """Whether the machine has rebooted and its node is in service, without any mark (label, annotation, taint) or
        claim of careen.
        """
        node = self.node(machine)
        at_rest = node.ready and not not_cleaned_up(node) and machine.name not in self.holders()
        return self.rebooted(machine) and at_rest

    def leaving(self, machine: Machine) -> list[PodLife]:
        """Return the terminating pods on the machine's node."""
        return [life for life in self.observer.pods() if life.node == machine.name and life.deleting_at]

    def workloads_are_ready(self) -> bool:
        for kind in ("deployments", "statefulsets"):
            for item in self.lab.plane.admin.list(f"/apis/apps/v1/namespaces/{SHOP}/{kind}"):
                if item.get("status", {}).get("readyReplicas", 0) != item["spec"]["replicas"]:
                    return False
        for item in self.lab.plane.admin.list(f"/apis/apps/v1/namespaces/{SHOP}/daemonsets"):
            if item.get("status", {}).get("numberReady", 0) != len(self.machines):
                return False
        return True

    def events(self, reason: str) -> list[str]:
        """Return the nodes for which careen posted an Event with this reason. Ignores Events of a kubelet with the same
        reason.
        """
        found = self.lab.plane.admin.list("/api/v1/namespaces/default/events")
        ours = [event for event in found if event.get("source", {}).get("component") != "kubelet"]
        return sorted(event["involvedObject"]["name"] for event in ours if event.get("reason") == reason)

    # -- waiting

    def wait_for(self, sentence: str, condition: Callable[[], T | None], seconds: float = 240) -> T:
        patience = TimeLimit(seconds)
        while True:
            problem = ""
            try:
                if answer := condition():
                    return answer
            except (ApiError, OSError) as error:
                problem = f" ({error})"
            assert not patience.is_over(), (
                f"after {patience.waited}, this is still not true: {sentence}{problem}\n{self.describe()}"
            )
            self.lab.plane.check()
            time.sleep(0.1)

    def reaches(self, machine: Machine, *phases: str) -> None:
        self.wait_for(f"{machine.name} is {' or '.join(phases)}", lambda: self.phase(machine) in phases)

    def drains(self, machine: Machine) -> None:
        """Wait until evictions are in progress on the machine."""
        self.wait_for(f"pods leave {machine.name}", lambda: self.phase(machine) == "Draining" and self.leaving(machine))

    def finishes(self, *machines: Machine) -> None:
        wanted = machines or self.machines
        names = ", ".join(machine.name for machine in wanted)
        self.wait_for(f"{names} rebooted and back", lambda: all(self.is_home(machine) for machine in wanted))
        self.wait_for("every workload is ready again", self.workloads_are_ready)

    # -- judging

    def judge(self, *machines: Machine, concurrency: int = 1, reboots: int = 1) -> None:
        """Check that `machines` (by default all) booted `reboots` times under a claim, and that no other machine
        booted. Check that at most `concurrency` nodes were down at once, and that every drained pod was evicted within
        its budget. At the end, the nodes have no mark (label, annotation, taint) of careen, and the lock has no claim.
        """
        time.sleep(1)  # the audit log is written a moment later
        seen = self.observer.seen
        for machine in self.machines:
            self._complete_reboots(machine)
        expected = {machine.name: reboots if machine in (machines or self.machines) else 0 for machine in self.machines}
        hosts = {machine.name: machine for machine in self.machines}
        with self.lab.plane.audit_log.open("rb") as log:
            log.seek(self._journal_from)
            audit = [json.loads(line) for line in log if line.endswith(b"\n")]
        journal = journal_of(audit, hosts, self.identity, concurrency=concurrency, known=self._known)
        sentences = broken(journal, since=self.observer.began_at)
        sentences += left_without_eviction(seen)
        sentences += budget_was_kept(seen, "web", replicas=4, unavailable=1)
        sentences += rebooted_often(seen, expected)
        sentences += [one for machine in self.machines for one in not_cleaned_up(self.observer.node(machine.name))]
        sentences += [f"{name} still holds the lock" for name in self.holders()]
        assert not sentences, "\n".join([*sentences, self.describe()])

    def describe(self) -> str:
        """Return the state of nodes and lock, and the last log lines of the agents, for the message of a failed
        test.
        """
        rows = []
        for machine in self.machines:
            node = self.observer.node(machine.name)
            if node is None:
                rows.append(f"{machine.name}: no Node")
                continue
            ours = {key: value for key, value in node.annotations.items() if key.startswith("careen.dev/")}
            state = f"up={machine.up} ready={node.ready} cordoned={node.unschedulable} taints={node.taints}"
            rows.append(f"{machine.name}: {state} boot={node.boot_id[:8]} {ours}")
        rows.append(f"lock: {self.observer.lock_now().text}")
        select = ("-n", self.identity.namespace, "-l", f"name={self.identity.daemonset}")
        rows.append(self.lab.kubectl("get", "pods", "-A", "-o", "wide", check=False))
        rows.append(self.lab.kubectl("logs", *select, "--tail=25", "--prefix", "--max-log-requests=9", check=False))
        rows.append(self.lab.kubectl("get", "events", "-n", self.identity.namespace, check=False)[-2500:])
        return "\n".join(rows)

    def close(self) -> None:
        """Remove everything that the test created, and start every machine again."""
        for machine in self.machines:
            if not machine.up:
                machine.power_on()
        self.wait_for("every node is Ready", self.lab.all_ready)
        for machine in self.machines:
            machine.run("rm", "-rf", "/run/reboot-required", "/etc/lab/static/story.yaml")
        self._take_all_away()
        for machine in self.machines:
            self._clear_node(machine)
        self.observer.close()

    # -- inside

    def _take_all_away(self) -> None:
        """Remove workloads, agents and policies. Namespaces and rights stay, because deleting a namespace is slow."""
        admin = self.lab.plane.admin
        now = {"propagationPolicy": "Background", "gracePeriodSeconds": 1}
        policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
        paths = [f"{policies}ybindings", f"{policies}ies", CAREEN.path, KURED.path]
        paths += [f"/apis/apps/v1/namespaces/{SHOP}/{kind}" for kind in ("deployments", "statefulsets", "daemonsets")]
        paths += [f"/apis/policy/v1/namespaces/{SHOP}/poddisruptionbudgets"]
        pods = [f"/api/v1/namespaces/{name}/pods" for name in (CAREEN.namespace, KURED.namespace, SHOP)]
        for path in [*paths, *pods, "/api/v1/namespaces/default/events"]:
            admin.delete(path, now)
        self.wait_for("every pod is gone", lambda: not any(admin.list(path) for path in pods))

    def _clear_node(self, machine: Machine) -> None:
        admin, path = self.lab.plane.admin, f"/api/v1/nodes/{machine.name}"
        node = admin.get(path)
        taints = [one for one in node["spec"].get("taints", ()) if not one["key"].startswith("careen.dev/")]
        annotations = {key: None for key in node["metadata"]["annotations"] if key.startswith("careen.dev/")}
        admin.patch(path, {"spec": {"unschedulable": None, "taints": taints}, "metadata": {"annotations": annotations}})

    def _observe(self, identity: Identity) -> Observer:
        observer = Observer(
            self.lab.plane.client, daemonset=(identity.namespace, identity.daemonset), lock_annotation=LOCK_ANNOTATION
        )
        self.wait_for("the nodes are watched", lambda: len(observer.nodes) == len(self.machines))
        return observer

    def _nodes(self) -> dict[str, NodeSeen]:
        return {machine.name: self.node(machine) for machine in self.machines}

    def _agents_are_ready(self) -> bool:
        status = self.lab.plane.admin.get(self.identity.path).get("status", {})
        wanted = len(self.machines)
        return bool(status.get("numberReady") == wanted == status.get("updatedNumberScheduled"))

    def _complete_reboots(self, machine: Machine) -> None:
        """Add to each recorded reboot both boot ids, and the time at which the node was Ready in the new boot. Only the
        API server knows these facts."""
        history = self.observer.node_history(machine.name)
        for number, reboot in enumerate(machine.reboots):
            before = [one.boot_id for one in history if one.at <= reboot.asked_at]
            after = [one for one in history if one.at > reboot.asked_at and one.ready and one.boot_id not in before]
            came = {"boot": after[0].boot_id, "ready_at": after[0].at} if after else {}
            machine.reboots[number] = replace(reboot, boot_left=before[-1] if before else "", **came)

    def _overlay(self, components: Sequence[str], flags: Sequence[str], tag: str, settings: dict[str, Any]) -> Path:
        """Write a kustomization that uses the manifests, as manifests/README.md shows."""
        folder = self.folder / "overlay"
        folder.mkdir(exist_ok=True)
        manifests = os.path.relpath(REPOSITORY / "manifests", folder)
        patches = [
            {
                "target": {"kind": "DaemonSet", "name": "careen"},
                "patch": json.dumps(
                    [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": flag} for flag in flags]
                ),
            }
        ]
        content = yaml.safe_dump({key.replace("_", "-"): value for key, value in settings.items()})
        replaced = [{"op": "replace", "path": "/data/config.yaml", "value": content}]
        config = {"target": {"kind": "ConfigMap", "name": "careen"}, "patch": json.dumps(replaced)}
        kustomization = {
            "resources": [manifests],
            "components": [f"{manifests}/{component}" for component in components],
            "images": [{"name": _IMAGE, "newTag": tag}],
            "patches": (patches if flags else []) + ([config] if settings else []),
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        return folder
