"""The actions and checks of a test with simulated nodes and careen's agents."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.cluster.harness.api import Object
from tests.cluster.harness.cluster import CAREEN, KURED, LOCK_ANNOTATION, Cluster, manifest_files
from tests.cluster.harness.machines.agents import CAREEN_PYTHONPATH, careen, clean_environment
from tests.cluster.harness.machines.control_plane import REPOSITORY, ControlPlane
from tests.cluster.harness.machines.hosts import Fleet, Host
from tests.cluster.harness.machines.proxy import Proxy
from tests.cluster.harness.measures.audit import Requests, requests_of
from tests.cluster.harness.observer import NodeSeen, PodLife, as_json
from tests.cluster.harness.rules import broken, journal_of, not_cleaned_up

ZONES = ("zone-a", "zone-b", "zone-c")


class Story(Cluster):
    """One test with simulated nodes and agents on a control plane. The test calls `judge` at its end, then `close`."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(plane, CAREEN, folder)
        self.hosts: dict[str, Host] = {}
        self.flags: list[str] = []
        self.proxies: dict[str, Proxy] = {}
        self.count_requests_from_now()
        for file in manifest_files():
            self.apply_file(file)

    # -- setting the stage

    def nodes(
        self, count: int, *flags: str, zones: int = 3, change: Callable[[Host], None] = lambda host: None
    ) -> list[Host]:
        """Start `count` nodes n00, n01, … in `zones` zones, each with an agent. Return the hosts when every agent is
        ready.
        """
        hosts = self.nodes_without_agents(count, *flags, zones=zones, change=change)
        self.start_agents()
        return hosts

    def nodes_without_agents(
        self, count: int, *flags: str, zones: int = 3, change: Callable[[Host], None] = lambda host: None
    ) -> list[Host]:
        """Start nodes as `nodes` does, but without agents. The test calls `start_agents` later."""
        self.flags = list(flags)
        hosts = [
            Host(name=f"n{number:02}", zone=ZONES[number % zones], folder=self.folder / "hosts" / f"n{number:02}")
            for number in range(count)
        ]
        for host in hosts:
            change(host)
            host.agent_wanted = False
            self.hosts[host.name] = host
        command = careen(
            self.plane,
            namespace=CAREEN.namespace,
            daemonset=CAREEN.daemonset,
            flags=lambda host: [*self.flags, *host.flags],
        )
        self.start_fleet(hosts, command)
        return hosts

    def behind_proxy(self, host: Host, alias: str = "") -> Proxy:
        """Let the agent of this host reach the API server through a proxy. A test passes this method to `nodes` as the
        argument `change`.
        """
        proxy = self.proxies[host.name + alias] = Proxy(self.plane.server, self.plane.certificate_authority)
        if not alias:
            host.api_server = proxy.url
        return proxy

    def start_agents(self) -> None:
        for host in self.hosts.values():
            host.agent_wanted = True
        self.agents_answer()

    def install_kured(self) -> None:
        """Install a DaemonSet like kured's and wait until it has a pod on every node. These pods reboot nothing."""
        self.apply_file(REPOSITORY / "bench" / "rollout" / "kured.yaml")
        self.wait_for(
            "kured's pods run",
            lambda: self.admin.get(KURED.path).get("status", {}).get("numberReady") == len(self.hosts),
        )

    def agents_answer(self, seconds: float = 90) -> None:
        self.wait_for("every agent runs", self.agents_run, seconds)
        wanted = [host for host in self.hosts.values() if host.agent_wanted and host.up]
        self.wait_for("every agent is ready", lambda: all(is_answering(host) for host in wanted), seconds)

    def workloads(self, *items: Object) -> None:
        """Create the workloads and wait until all of their pods are ready."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, *items)
        self.wait_for("the workloads are ready", self.pods_are_ready, 90)

    def settings(self, **values: Any) -> None:
        """Write the ConfigMap that the agents read. The names of the arguments are the names of the settings, with
        underscores instead of dashes.
        """
        content = yaml.safe_dump({key.replace("_", "-"): value for key, value in values.items()})
        path = f"/api/v1/namespaces/{CAREEN.namespace}/configmaps"
        self.admin.patch(f"{path}/careen", {"data": {"config.yaml": content}})

    # -- doing something

    @staticmethod
    def need_reboot(hosts: Iterable[Host]) -> None:
        for host in hosts:
            host.ask_for_reboot()

    def the_fleet(self) -> Fleet:
        assert self.fleet is not None
        return self.fleet

    def annotate_node(self, host: Host, key: str, value: str | None) -> None:
        self.admin.patch(f"/api/v1/nodes/{host.name}", {"metadata": {"annotations": {key: value}}})

    def cordon(self, host: Host, *, cordoned: bool = True) -> None:
        self.admin.patch(f"/api/v1/nodes/{host.name}", {"spec": {"unschedulable": cordoned}})

    def write_lock(self, text: str | None) -> None:
        """Write the lock as a person does with kubectl annotate."""
        self.admin.patch(CAREEN.path, {"metadata": {"annotations": {LOCK_ANNOTATION: text}}})

    def end_pod(self, life: PodLife, phase: str) -> None:
        """End the pod's containers. `phase` is Succeeded or Failed."""
        conditions = [
            {"type": kind, "status": "False", "reason": "PodCompleted"} for kind in ("Ready", "ContainersReady")
        ]
        self.admin.patch(
            f"/api/v1/namespaces/{life.namespace}/pods/{life.name}/status",
            {"status": {"phase": phase, "conditions": conditions}},
            "application/strategic-merge-patch+json",
        )

    # -- asking

    def state(self, host: Host) -> NodeSeen:
        """Return the current state of the host's node."""
        state = self.observer.node(host.name)
        assert state is not None, f"{host.name} does not exist"
        return state

    def phase(self, host: Host) -> str:
        """Return the phase in the node's annotation, or Idle if there is no annotation."""
        state = self.observer.node(host.name)
        return state.annotations.get("careen.dev/phase", "Idle") if state else "no such node"

    def reason(self, host: Host) -> str:
        return self.state(host).annotations.get("careen.dev/reason", "")

    def refusals(self, host: Host) -> dict[str, str]:
        """Map the reason code of each refusal on the Node to the sentence that says why the Node may not reboot yet."""
        refusals = as_json(self.state(host).annotations.get("careen.dev/refusals")) or []
        return {refusal["code"]: refusal["sentence"] for refusal in refusals}

    def is_tainted(self, host: Host) -> bool:
        return ("careen.dev/reboot", "PreferNoSchedule") in self.state(host).taints

    def holders(self) -> tuple[str, ...]:
        return self.observer.lock_now().holders

    def is_over(self, hosts: Sequence[Host]) -> bool:
        """Whether all hosts have rebooted and are in service again, and the lock has no claim."""
        return (
            all(host.reboots and host.up for host in hosts)
            and all(self.is_home(host) for host in hosts)
            and not self.holders()
        )

    def is_home(self, host: Host) -> bool:
        state = self.observer.node(host.name)
        return state is not None and state.ready and not not_cleaned_up(state)

    def finishes(self, hosts: Sequence[Host], seconds: float = 120) -> None:
        self.wait_for(f"{len(hosts)} nodes have rebooted and are back", lambda: self.is_over(hosts), seconds)

    def finishes_one(self, host: Host, seconds: float = 60) -> None:
        """Wait until this node has rebooted and is back in service. Does not wait for other nodes."""
        self.wait_for(
            f"{host.name} has rebooted and is back",
            lambda: host.reboots and host.up and self.is_home(host) and host.name not in self.holders(),
            seconds,
        )

    def reaches(self, host: Host, *phases: str, seconds: float = 60) -> None:
        self.wait_for(f"{host.name} is {' or '.join(phases)}", lambda: self.phase(host) in phases, seconds)

    def any_of(self, hosts: Sequence[Host], *phases: str, seconds: float = 60) -> Host:
        """Wait until one of the hosts reaches one of the phases, and return this host."""
        return self.wait_for(
            f"a node is {' or '.join(phases)}",
            lambda: next((host for host in hosts if self.phase(host) in phases), None),
            seconds,
        )

    def stays(self, sentence: str, condition: Callable[[], bool], seconds: float) -> None:
        """Check ten times a second, for `seconds` seconds, that the condition is true. `sentence` describes the
        condition in the error message.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert condition(), f"no longer true: {sentence}\n{self.describe()}"
            time.sleep(0.1)

    def events(self, reason: str | None = None) -> list[Object]:
        """Return the Events about nodes, or only those with this `reason`."""
        found = self.admin.list("/api/v1/namespaces/default/events")
        return [
            event
            for event in found
            if event["involvedObject"]["kind"] == "Node" and reason in (None, event.get("reason"))
        ]

    def metrics(self, host: Host) -> str:
        return urllib3.request(
            "GET", f"http://127.0.0.1:{host.metrics_port()}/metrics", retries=False, timeout=5
        ).data.decode()

    def command(self, *words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run `careen WORDS…` with this kubeconfig, or as a cluster administrator if none is given."""
        env = {
            **clean_environment(),
            "PYTHONPATH": CAREEN_PYTHONPATH,
            "KUBECONFIG": str(kubeconfig or self.plane.folder / "admin.kubeconfig"),
        }
        return subprocess.run(
            [sys.executable, "-m", "careen", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=env,
            cwd=self.folder,
        )

    def requests(self) -> Requests:
        """Count the agents' requests to the API server since the test began, or since `count_requests_from_now` was
        called.
        """
        return requests_of(self.plane.audit_events(self._audit_from), CAREEN.user)

    def count_requests_from_now(self) -> None:
        """Let `requests` and `forbidden` ignore all earlier requests."""
        log = self.plane.audit_log
        self._audit_from = log.stat().st_size if log.exists() else 0

    def forbidden(self) -> list[str]:
        """Return verb and path of each agent's request that was answered with 403."""
        return sorted(
            {
                f"{event['verb']} {event['requestURI'].partition('?')[0]}"
                for event in self.plane.audit_events(self._audit_from)
                if event["user"]["username"] == CAREEN.user and event.get("responseStatus", {}).get("code") == 403
            }
        )

    def close(self) -> None:
        super().close()
        for proxy in self.proxies.values():
            proxy.close()

    # -- judging

    def judge(
        self,
        *,
        concurrency: int = 1,
        groups: Mapping[str, Mapping[str, int]] | None = None,
        but: Collection[str] = (),
    ) -> None:
        """Check the rules of `drydock.checker` since the observer's history began. `but` names the rules that people
        break in this story."""
        time.sleep(1)  # the audit log is written a moment later
        audit = self.plane.audit_events(self.journal_from)
        journal = journal_of(audit, self.hosts, self.identity, concurrency=concurrency, groups=groups)
        sentences = broken(journal, since=self.observer.began_at, but=but)
        assert not sentences, "\n".join([*sentences, self.describe()])

    def is_clean(self, hosts: Iterable[Host]) -> None:
        """Fail if one of these nodes has a label, an annotation, a taint or a cordon of careen."""
        sentences = [sentence for host in hosts for sentence in not_cleaned_up(self.observer.node(host.name))]
        assert not sentences, "\n".join([*sentences, self.describe()])


def is_answering(host: Host) -> bool:
    """Whether the agent's /readyz answers with status 200."""
    try:
        return (
            urllib3.request("GET", f"http://127.0.0.1:{host.metrics_port()}/readyz", retries=False, timeout=2).status
            == 200
        )
    except urllib3.exceptions.HTTPError:
        return False
