"""A Kubernetes control plane on loopback: etcd, API server, controllers, scheduler and kwok, all in one folder.

`make test-cluster` builds the two required programs; see mk/cluster.mk.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.cluster.harness.api import Api, ApiError
from tests.cluster.harness.audit_log import AUDIT_RULES
from tests.cluster.harness.machines.processes import Guardian, Program, free_port

REPOSITORY = Path(__file__).resolve().parents[4]
BINARIES = REPOSITORY / ".cache" / "bin"
# `make test-cluster-versions` runs the stories on other releases, such as "1.33".
RELEASE = os.environ.get("CLUSTER_KUBERNETES", "")
CONTROL_PLANE = BINARIES / (f"v{RELEASE}" if RELEASE else ".") / "controlplane"

# Everything except the agents acts as a cluster administrator, so only the agents' ServiceAccount needs RBAC rights.
USERS = ("admin", "controllers", "scheduler", "kwok")

# Deciding on one thread over all nodes makes the scheduler repeat itself, apart from ties.
SCHEDULER_SETTINGS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 1,
    "percentageOfNodesToScore": 100,
    "leaderElection": {"leaderElect": False},
}

# ServiceAccounts are the agents; the rest of the control plane is not counted. One line per finished request.
AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
# With what `drydock.checker` judges; a bench would measure its costs.
JOURNAL_POLICY = {**AUDIT_POLICY, "rules": [*AUDIT_RULES, *AUDIT_POLICY["rules"]]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTimes:
    """How many seconds a simulated container takes to become ready, and how many seconds it takes to end after its
    deletion.
    """

    start_seconds: float = 1.0
    stop_seconds: float = 0.5


class ControlPlane:
    """A control plane. Its constructor starts it, and `close` ends it. `admin` is a client with all rights."""

    def __init__(
        self,
        folder: Path,
        *,
        guardian: Guardian,
        pods: PodTimes = PodTimes(),
        scheduler: Mapping[str, Any] = SCHEDULER_SETTINGS,
        scheduler_processors: int = 0,
        lease_seconds: int = 40,
        audit_policy: Mapping[str, Any] = AUDIT_POLICY,
        api_server_flags: Sequence[str] = (),
        is_bare: bool = False,
    ) -> None:
        """`is_bare`: only etcd and the API server, for a bench that starts a scheduler itself."""
        self.folder = folder
        self.guardian = guardian
        self._pods = pods
        self._scheduler = scheduler
        self._scheduler_processors = scheduler_processors  # 0: all
        self._lease_seconds = lease_seconds
        self._audit_policy = audit_policy
        self._api_server_flags = api_server_flags
        self._programs: dict[str, Program] = {}
        self._etcd_port, self.port = free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.certificate_authority = folder / "certs" / "apiserver.crt"
        self.audit_log = folder / "audit.log"
        self._tokens = {user: secrets.token_hex(16) for user in USERS}
        require_binaries()
        folder.mkdir(parents=True, exist_ok=True)
        self._write_files()
        try:
            self._start_etcd()
            self.start_api_server()
            if not is_bare:
                self._start_the_rest()
        except BaseException:
            self.close()
            raise

    # -- files

    def _write_files(self) -> None:
        # One user per program, each in the group that may do everything.
        rows = [f'{token},{user},{user},"system:masters"' for user, token in self._tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        subprocess.run(
            ["openssl", "genrsa", "-out", str(self.folder / "service-accounts.key"), "2048"],
            check=True,
            capture_output=True,
        )
        (self.folder / "audit-policy.yaml").write_text(yaml.safe_dump(self._audit_policy))
        for user in USERS:
            self.kubeconfig(user, self._tokens[user])
        connection = {
            **self._scheduler.get("clientConnection", {}),
            "kubeconfig": str(self.folder / "scheduler.kubeconfig"),
        }
        scheduler = {**self._scheduler, "clientConnection": connection}
        (self.folder / "scheduler.yaml").write_text(yaml.safe_dump(scheduler))
        (self.folder / "stages.yaml").write_text(yaml.safe_dump_all(stages(self._pods)))

    def kubeconfig(self, name: str, token: str, *, server: str | None = None, namespace: str = "default") -> Path:
        """Write a kubeconfig file with this token, and return its path."""
        path = self.folder / f"{name}.kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name, "namespace": namespace}}],
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {
                        "server": server or self.server,
                        "certificate-authority": str(self.certificate_authority),
                    },
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
        }
        # Atomically: an agent may be reading it while a token is renewed.
        fresh = path.with_suffix(".fresh")
        fresh.write_text(yaml.safe_dump(content))
        fresh.replace(path)
        return path

    # -- programs

    def _start(self, name: str, *argv: str) -> None:
        self._programs[name] = Program(name, argv, guardian=self.guardian, log=self.folder / "logs" / f"{name}.log")

    def _start_etcd(self) -> None:
        here = f"http://127.0.0.1:{self._etcd_port}"
        self._start(
            "etcd",
            *(str(CONTROL_PLANE), "etcd", "--data-dir", str(self.folder / "etcd")),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", f"http://127.0.0.1:{free_port()}"),
            *("--unsafe-no-fsync", "--log-level", "error"),
        )

    def start_api_server(self) -> None:
        """Start the API server and wait until it is ready. A test may call this again after `stop_api_server`."""
        self._start(
            "apiserver",
            *(str(CONTROL_PLANE), "apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd_port}"),
            *(f"--secure-port={self.port}", "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"),
            *(f"--cert-dir={self.folder / 'certs'}", "--service-account-issuer=https://kubernetes.default.svc"),
            f"--service-account-signing-key-file={self.folder / 'service-accounts.key'}",
            f"--service-account-key-file={self.folder / 'service-accounts.key'}",
            *("--authorization-mode=Node,RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}"),
            # Keeps a kubelet from changing other Nodes, as in every distribution.
            "--enable-admission-plugins=NodeRestriction",
            *("--service-cluster-ip-range=10.0.0.0/16", "--allow-privileged=true"),
            *(f"--audit-policy-file={self.folder / 'audit-policy.yaml'}", f"--audit-log-path={self.audit_log}"),
            "--audit-log-maxsize=100000",  # megabytes; a rotated log would lack what the journal needs
            # A closed API server should take its open watches with it at once.
            "--shutdown-delay-duration=0s",
            *self._api_server_flags,
        )
        self._wait_until_ready()

    def _wait_until_ready(self, patience_seconds: float = 90) -> None:
        give_up = time.monotonic() + patience_seconds
        problem: object = "not asked yet"
        while time.monotonic() < give_up:
            for name in ("etcd", "apiserver"):
                if (code := self._programs[name].exit_code()) is not None:
                    raise RuntimeError(f"{name} ended with {code}:\n{self._programs[name].tail()}")
            if self.certificate_authority.exists():
                self.admin = self.client()
                try:
                    self.admin.text("/readyz")
                except (ApiError, urllib3.exceptions.HTTPError) as error:
                    problem = error
                    self.admin.close()
                else:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"the API server was not ready within {patience_seconds} s: {problem}")

    def _start_the_rest(self) -> None:
        self._start(
            "controllers",
            *(str(CONTROL_PLANE), "kcm", f"--kubeconfig={self.folder / 'controllers.kubeconfig'}"),
            *("--leader-elect=false", "--secure-port=0", f"--root-ca-file={self.certificate_authority}"),
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            # Hosts go down only when a story says so. Without this, every node would count as dead after a pause of the
            # API server of one minute.
            "--node-monitor-grace-period=15m",
            # client-go's defaults of 20/30 requests a second starve 100 pods that all move at once.
            *("--kube-api-qps=200", "--kube-api-burst=400"),
        )
        self.start_scheduler()
        self._start(
            "kwok",
            *(str(BINARIES / "kwok"), f"--kubeconfig={self.folder / 'kwok.kubeconfig'}", "--manage-all-nodes=true"),
            *("--config", str(self.folder / "stages.yaml"), f"--node-lease-duration-seconds={self._lease_seconds}"),
            *("--server-address", f"127.0.0.1:{free_port()}"),
        )

    def start_scheduler(self) -> None:
        """Start the scheduler. A test may call this again after `stop_scheduler`."""
        few = ("env", f"GOMAXPROCS={self._scheduler_processors}") if self._scheduler_processors else ()
        self._start(
            "scheduler",
            *(*few, str(CONTROL_PLANE), "scheduler", f"--config={self.folder / 'scheduler.yaml'}", "--v=2"),
            "--secure-port=0",
        )

    def stop_scheduler(self) -> None:
        """Kill the scheduler, so that it loses its state as in a crash."""
        self._programs.pop("scheduler").kill()

    def stop_api_server(self) -> None:
        """Kill the API server, so that it closes no connection properly. etcd keeps its data."""
        self._programs.pop("apiserver").kill()
        self.admin.close()

    def program(self, name: str) -> Program:
        return self._programs[name]

    def check(self) -> None:
        """Raise an error if a program of the control plane has ended."""
        for name, program in self._programs.items():
            if (code := program.exit_code()) is not None:
                raise RuntimeError(f"{name} ended with {code}:\n{program.tail()}")

    def close(self) -> None:
        # Clients stop before servers, so that they do not log pages of refused connections.
        for name in ("kwok", "scheduler", "controllers", "apiserver", "etcd"):
            if program := self._programs.pop(name, None):
                program.kill()
        if hasattr(self, "admin"):
            self.admin.close()

    # -- identities

    def client(self, token: str | None = None) -> Api:
        """Return a new client with this token, or with an administrator's token if none is given."""
        return Api(self.server, token or self._tokens["admin"], self.certificate_authority)

    def client_as(self, user: str, group: str) -> Api:
        """Return a client that impersonates a user, for example a kubelet, which has no token here."""
        acts_as = {"Impersonate-User": user, "Impersonate-Group": group}
        return Api(self.server, self._tokens["admin"], self.certificate_authority, acts_as)

    def service_account_token(self, namespace: str, name: str, bound_to: dict[str, str] | None = None) -> str:
        """Request a token of a ServiceAccount, as a kubelet does. If the token is bound to a pod, the token becomes
        invalid when the pod is deleted.
        """
        spec: dict[str, Any] = {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 7200}
        if bound_to:
            spec["boundObjectRef"] = bound_to
        answer = self.admin.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(answer["status"]["token"])

    def audit_events(self, from_byte: int = 0) -> list[dict[str, Any]]:
        """The events of the audit log after `from_byte`, without an incomplete last line."""
        if not self.audit_log.exists():
            return []
        with self.audit_log.open("rb") as log:
            log.seek(from_byte)
            return [json.loads(line) for line in log if line.endswith(b"\n")]


@contextmanager
def a_control_plane(
    name: str, start: Callable[[Path, Guardian], ControlPlane], *, keeps_logs: bool = False
) -> Iterator[ControlPlane]:
    """Yield a control plane that `start` creates in an empty folder. `name` is part of the folder's name. At the end,
    even after an error, end the control plane and remove the folder unless `keeps_logs` is set.

    The folder is not in pytest's temporary folder, because pytest keeps old folders, and etcd's files are large.
    """
    folder, guardian = Path(tempfile.mkdtemp(prefix=f"careen-{name}-")), Guardian()
    try:
        plane = start(folder, guardian)
        try:
            yield plane
        finally:
            plane.close()
    finally:
        guardian.close()
        if keeps_logs:
            print(f"logs are in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def require_binaries() -> None:
    missing = [path.name for path in (CONTROL_PLANE, BINARIES / "kwok") if not path.exists()]
    if missing:
        how = f"make test-cluster-versions VERSIONS={RELEASE}" if RELEASE else "make test-cluster"
        raise RuntimeError(f"{', '.join(missing)} not built: run `{how}`, which builds into {CONTROL_PLANE.parent}")


def stages(pods: PodTimes) -> list[dict[str, Any]]:
    """Return the kwok stages that set pods to ready, let Jobs complete, and end deleted pods.

    `hosts.py` simulates the nodes, because kwok would write the old boot id when it repairs a NotReady node.
    """

    def stage(
        name: str, kind: str, selector: list[dict[str, Any]], delay: dict[str, Any], then: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": name},
            "spec": {
                "resourceRef": {"apiGroup": "v1", "kind": kind},
                "selector": {"matchExpressions": selector},
                "delay": delay,
                "next": then,
            },
        }

    def absent(key: str) -> dict[str, Any]:
        return {"key": key, "operator": "DoesNotExist"}

    def present(key: str) -> dict[str, Any]:
        return {"key": key, "operator": "Exists"}

    # A pod may carry its own time to stop, in the annotation that `workloads.py` writes.
    stop = {
        "durationMilliseconds": int(pods.stop_seconds * 1000),
        "durationFrom": {"expressionFrom": '.metadata.annotations["tests/stop-after"]'},
    }
    return [
        stage(
            "pod-ready",
            "Pod",
            [absent(".metadata.deletionTimestamp"), absent(".status.podIP"), absent(_NEVER_READY)],
            {"durationMilliseconds": int(pods.start_seconds * 1000)},
            {"statusTemplate": _RUNNING},
        ),
        stage(
            "pod-never-ready",
            "Pod",
            [absent(".metadata.deletionTimestamp"), absent(".status.podIP"), present(_NEVER_READY)],
            {"durationMilliseconds": int(pods.start_seconds * 1000)},
            {"statusTemplate": _CRASHING},
        ),
        stage(
            "pod-complete",
            "Pod",
            [
                absent(".metadata.deletionTimestamp"),
                {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]},
            ],
            {
                "durationMilliseconds": 1000,
                "durationFrom": {"expressionFrom": '.metadata.annotations["tests/runs-for"]'},
            },
            {"statusTemplate": _COMPLETED},
        ),
        stage(
            "pod-delete",
            "Pod",
            [present(".metadata.deletionTimestamp"), absent(".metadata.finalizers")],
            stop,
            {"delete": True},
        ),
        stage(
            "node-left-alone",
            "Node",
            [present('.metadata.annotations["tests/never"]')],
            {"durationMilliseconds": 60000},
            {"statusTemplate": "phase: Running\n"},
        ),
    ]


# On a pod whose containers crash again and again.
_NEVER_READY = '.metadata.annotations["tests/never-ready"]'

_CRASHING = (
    """
{{ $now := Now }}
conditions:
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Initialized}
- {lastTransitionTime: {{ $now | Quote }}, status: "False", type: Ready, reason: ContainersNotReady}
- {lastTransitionTime: {{ $now | Quote }}, status: "False", type: ContainersReady, reason: ContainersNotReady}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: PodScheduled}
containerStatuses:
{{ range .spec.containers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, """
    """ready: false, started: false, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) """
    """( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
phase: Running
startTime: {{ $now | Quote }}
"""
)

_RUNNING = (
    """
{{ $now := Now }}
conditions:
{{ range (list "Initialized" "Ready" "ContainersReady" "PodScheduled") }}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: {{ . | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, """
    """ready: true, started: true, restartCount: 0, state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) """
    """( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
phase: Running
startTime: {{ $now | Quote }}
"""
)

_COMPLETED = (
    """
{{ $now := Now }}
containerStatuses:
{{ range .spec.containers }}
- {image: {{ .image | Quote }}, name: {{ .name | Quote }}, """
    """ready: false, started: false, restartCount: 0, state: {terminated: {exitCode: 0, reason: Completed, """
    """finishedAt: {{ $now | Quote }}, startedAt: {{ $now | Quote }}}}}
{{ end }}
conditions:
- {lastTransitionTime: {{ $now | Quote }}, status: "False", type: Ready, reason: PodCompleted}
phase: Succeeded
"""
)
