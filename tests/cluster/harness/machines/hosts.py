"""Simulated hosts: each has a folder with a boot id and a sentinel (a file by which a host says that it needs a
reboot), an agent process, and a reboot that takes time.

One thread acts as kubelet and machine for all hosts. The thread kills the agent when the machine goes down, reports to
the API server like a kubelet, and starts the agent again after the boot. This code does not depend on the behaviour of
the agents.
"""

from __future__ import annotations

import contextlib
import copy
import shlex
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import urllib3

from tests.cluster.harness.api import Api, ApiError, Object
from tests.cluster.harness.machines.processes import Guardian, Program, free_port
from tests.cluster.harness.objects import condition

if TYPE_CHECKING:
    from tests.cluster.harness.observer import Observer, PodLife


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The arguments and environment variables of an agent process. A function of the type AgentCommand returns them for
    a host.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]


# Returns the command of a host's agent, given the host and the token of its pod.
AgentCommand = Callable[["Host", str], Launch]


@dataclass(slots=True, kw_only=True)
class Reboot:
    """One reboot of a machine, with the times of its steps in seconds since the epoch."""

    asked_at: float
    boot_left: str
    by_agent: bool  # False: the machine went down by itself
    boot: str = ""
    ready_at: float | None = None


@dataclass(slots=True, kw_only=True)
class Host:
    """A simulated machine. With the fields from `boot_seconds` to `flags`, a test makes the machine slow or faulty."""

    name: str
    zone: str
    folder: Path
    labels: dict[str, str] = field(default_factory=dict)
    cpus: int = 8
    memory: str = "32Gi"

    boot_seconds: float = 2.0
    shutdown_seconds: float = 0.0  # from the request until the machine is down
    ready_after_seconds: float = 0.0  # from the start of the agent after a boot until the kubelet reports Ready
    pods_after_seconds: float = 0.5  # from Ready until its pods are ready again
    comes_back: bool = True
    sentinel_survives: bool = False  # a sentinel on disk, or a command that always answers yes
    agent_wanted: bool = True
    restart_seconds: float = 1.0  # a crashed agent is started again after this
    flags: list[str] = field(default_factory=list)  # for this host's agent alone
    api_server: str = ""  # the URL that the agent uses, such as a proxy's; empty: the server's own
    alias: str = ""  # distinguishes the files of a second agent from those of the first

    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    reboots: list[Reboot] = field(default_factory=list)
    crashes: list[tuple[float, int]] = field(default_factory=list)  # when, exit code
    starts: int = 0
    agent: Program | None = None
    second_agents: list[Program] = field(default_factory=list)
    agent_pod: str = ""  # uid of the pod the agent runs for
    agent_pod_name: str = ""
    port: int = 0
    up: bool = True
    killed: bool = False  # by a story, so its end is no crash
    _down_until: float = 0.0
    _start_after: float = 0.0
    _requests_taken: int = 0
    _told_down: bool = True
    _going_down_at: float | None = None
    _ready_at: float | None = None
    _kill_at: float | None = None
    _pods_at: float | None = None

    # -- files of the machine

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def sentinel(self) -> Path:
        return self.root / "var" / "run" / "reboot-required"

    @property
    def boot_id_file(self) -> Path:
        return self.root / "proc" / "sys" / "kernel" / "random" / "boot_id"

    @property
    def reboot_command(self) -> Path:
        return self.folder / "reboot"

    @property
    def requests(self) -> Path:
        return self.folder / "reboot-requests"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    def build(self) -> None:
        # As on Debian: /var/run is a link. The agents' lock between processes lives in /run/careen.
        for folder in (self.root / "run" / "careen", self.root / "var", self.boot_id_file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / "var" / "run").symlink_to("../run")
        self.boot_id_file.write_text(self.boot_id + "\n")
        here = shlex.quote(str(self.folder))
        self.reboot_command.write_text(
            "#!/bin/sh\n"
            f"if [ -e {here}/reboot-fails ]; then date +%s.%N >> {here}/reboot-refused; echo 'no reboot "
            "today' >&2; exit 1; fi\n"
            f"if [ -e {here}/reboot-ignored ]; then date +%s.%N >> {here}/reboot-refused; exit 0; fi\n"
            f"date +%s.%N >> {here}/reboot-requests\n"
        )
        self.reboot_command.chmod(0o755)

    def ask_for_reboot(self) -> None:
        """Create the sentinel (the file that says that the host needs a reboot), as a package manager does after a
        kernel update.
        """
        self.sentinel.write_text("*** System restart required ***\n")

    def withdraw(self) -> None:
        self.sentinel.unlink(missing_ok=True)

    def reboot_fails(self) -> None:
        (self.folder / "reboot-fails").touch()

    def reboot_ignored(self) -> None:
        (self.folder / "reboot-ignored").touch()

    def reboot_works(self) -> None:
        for name in ("reboot-fails", "reboot-ignored"):
            (self.folder / name).unlink(missing_ok=True)

    def failed_requests(self) -> int:
        refused = self.folder / "reboot-refused"
        return len(refused.read_text().splitlines()) if refused.exists() else 0

    def metrics_port(self) -> int:
        """Return the port of the agent's metrics. The port stays the same when the agent starts again, so a test can
        always read the metrics.
        """
        self.port = self.port or free_port()
        return self.port

    # -- the node

    def manifest(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": {
                    "kubernetes.io/hostname": self.name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/zone": self.zone,
                    **self.labels,
                },
            },
            "status": {
                "capacity": self._capacity(),
                "allocatable": self._capacity(),
                "conditions": [_ready(True)],
                "addresses": [
                    {"type": "InternalIP", "address": "10.1.0.1"},
                    {"type": "Hostname", "address": self.name},
                ],
                "nodeInfo": {
                    "bootID": self.boot_id,
                    "machineID": self.name,
                    "systemUUID": self.name,
                    "architecture": "amd64",
                    "operatingSystem": "linux",
                    "osImage": "simulated",
                    "kernelVersion": "6.1.0",
                    "kubeletVersion": "v1.36.3",
                    "kubeProxyVersion": "v1.36.3",
                    "containerRuntimeVersion": "kwok://0.8.0",
                },
            },
        }

    def _capacity(self) -> dict[str, str]:
        return {"cpu": str(self.cpus), "memory": self.memory, "pods": "110", "ephemeral-storage": "100Gi"}

    # -- the machine, one small step at a time

    def step(self, now: float, api: Api, observer: Observer, start: Callable[[Host], None]) -> None:
        if self.up:
            self._play_up(now, observer, start)
            if self._ready_at is not None and now >= self._ready_at:
                self._become_ready(api)
            if self._pods_at is not None and now >= self._pods_at:
                tell_pods_ready(api, self.name, ready=True)
                self._pods_at = None
        elif not self._told_down:
            tell_ready(api, self, ready=False)
            tell_pods_ready(api, self.name, ready=False)
            self._told_down = True
        elif self.comes_back and now >= self._down_until:
            self._boot(api)

    def _play_up(self, now: float, observer: Observer, start: Callable[[Host], None]) -> None:
        asked = self.requests.read_text().split() if self.requests.exists() else []
        if len(asked) > self._requests_taken and self._going_down_at is None:
            self._going_down_at = now + self.shutdown_seconds
        if self._going_down_at is not None and now >= self._going_down_at:
            # A machine that is asked twice during its shutdown still goes down once.
            first, self._requests_taken = asked[self._requests_taken], len(asked)
            self.go_down(now, asked_at=float(first), by_agent=True)
            return
        pod = agent_pod(observer, self.name)
        if self.agent is not None:
            code = self.agent.exit_code()
            if code is not None:
                if not self.killed:
                    self.crashes.append((now, code))
                self.killed = False
                self.agent.kill()
                self.agent, self._kill_at = None, None
                self._start_after = now + self.restart_seconds
            elif self._kill_at is not None:
                if now >= self._kill_at:
                    self.agent.kill()
            elif pod is None or pod.uid != self.agent_pod or not self.agent_wanted:
                # Its pod is gone, or another one took its place: a kubelet stops the containers of the old one.
                self.ask_agent_to_stop(now)
        elif pod is not None and self.agent_wanted and now >= self._start_after:
            self.agent_pod, self.agent_pod_name = pod.uid, pod.name
            start(self)
            self.starts += 1

    def ask_agent_to_stop(self, now: float) -> None:
        """Send SIGTERM to the agent, and SIGKILL after the grace period of its pod."""
        if self.agent is not None:
            self.killed = True
            self.agent.signal(signal.SIGTERM)
            self._kill_at = now + 10

    def go_down(self, now: float, *, asked_at: float, by_agent: bool) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent, self._kill_at, self.killed = None, None, False
        for each in self.second_agents:
            each.kill()
        self.second_agents = []
        self.reboots.append(Reboot(asked_at=asked_at, boot_left=self.boot_id, by_agent=by_agent))
        if not self.sentinel_survives:
            self.withdraw()
        self.up, self._told_down = False, False
        self._going_down_at = self._ready_at = self._pods_at = None
        self._down_until = now + self.boot_seconds

    def _boot(self, api: Api) -> None:
        # One new id per boot, also if the API server does not answer and this runs again.
        reboot = self.reboots[-1]
        reboot.boot = reboot.boot or str(uuid.uuid4())
        self.boot_id = reboot.boot
        self.boot_id_file.write_text(self.boot_id + "\n")
        if api.find(f"/api/v1/nodes/{self.name}") is None:
            api.create("/api/v1/nodes", self.manifest())
        self._ready_at = time.time() + self.ready_after_seconds
        self.up = True
        if not self.ready_after_seconds:
            self._become_ready(api)

    def _become_ready(self, api: Api) -> None:
        tell_ready(api, self, ready=True)
        self._ready_at = None
        self._pods_at = time.time() + self.pods_after_seconds
        self.reboots[-1].ready_at = time.time()


class Fleet:
    """The hosts of one test, and the thread that simulates them."""

    def __init__(
        self,
        api: Callable[[], Api],
        observer: Observer,
        start_agent: AgentCommand,
        *,
        guardian: Guardian,
        token: Callable[[Host], str],
    ) -> None:
        self.hosts: dict[str, Host] = {}
        self.problems: list[str] = []
        self.agents: list[Program] = []  # every one that was started
        self._connect = api
        self._observer = observer
        self._start_agent = start_agent
        self._token = token
        self._guardian = guardian
        self._ended = threading.Event()
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, name="hosts", daemon=True)
        self._thread.start()

    def add(self, host: Host) -> Host:
        """Create the machine and register its node, as a kubelet does when it starts."""
        host.build()
        self._connect().create("/api/v1/nodes", host.manifest())
        with self._lock:
            self.hosts[host.name] = host
        return host

    def start_another_agent(self, host: Host, *, api_server: str = "") -> Program:
        """Start a second agent for the host while the first agent runs, as after a forced deletion of the first agent's
        pod. The second agent ends when the machine goes down."""
        other = copy.copy(host)
        other.alias, other.api_server = "-second", api_server or host.api_server
        program = self._launch(other, host.folder / "second-agent.log")
        with self._lock:
            host.second_agents.append(program)
        return program

    def stop_agent(self, host: Host) -> None:
        """Send SIGTERM to the agent, as if its container were stopped. The machine starts another agent."""
        with self._lock:
            host.ask_agent_to_stop(time.time())

    def kill_agent(self, host: Host) -> None:
        """Send SIGKILL to the agent. The machine starts the agent again after `restart_seconds`."""
        with self._lock:
            assert host.agent is not None, f"no agent runs on {host.name}"
            host.killed = True
            host.agent.kill()

    def freeze_agent(self, host: Host) -> None:
        """Suspend the agent with SIGSTOP. The agent does not notice the interruption, as on an overloaded host or in a
        frozen cgroup."""
        assert host.agent is not None, f"no agent runs on {host.name}"
        host.agent.signal(signal.SIGSTOP)

    def thaw_agent(self, host: Host) -> None:
        if host.agent is not None:
            host.agent.signal(signal.SIGCONT)

    def power_off(self, host: Host) -> None:
        """Let the machine go down by itself, without a request by an agent."""
        with self._lock:
            host.go_down(time.time(), asked_at=time.time(), by_agent=False)

    def processor_seconds(self) -> float:
        """Return the processor time of all agents since their start, including killed agents."""
        return sum(agent.processor_seconds() for agent in list(self.agents))

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=20)
        for host in self.hosts.values():
            for program in (host.agent, *host.second_agents):
                if program is not None:
                    program.kill()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            for host in list(self.hosts.values()):
                with self._lock:
                    # The API server may be down. The kubelet tries again.
                    try:
                        host.step(time.time(), self._connect(), self._observer, self._start)
                    except (ApiError, urllib3.exceptions.HTTPError) as error:
                        if len(self.problems) < 1000:
                            self.problems.append(f"{time.time():.1f} {host.name}: {error}")

    def _start(self, host: Host) -> None:
        host.agent = self._launch(host, host.log)

    def _launch(self, host: Host, log: Path) -> Program:
        launch = self._start_agent(host, self._token(host))
        program = Program(
            f"agent of {host.name}", launch.argv, guardian=self._guardian, log=log, env=launch.env, cwd=host.folder
        )
        self.agents.append(program)
        return program


def agent_pod(observer: Observer, node: str) -> PodLife | None:
    """Return the newest DaemonSet pod on this node that has become ready and is not being deleted, or None."""
    namespace, name = observer.daemonset
    found = [
        life
        for life in observer.pods()
        if life.node == node
        and life.namespace == namespace
        and life.owner == f"DaemonSet/{name}"
        and life.ready_at is not None
        and life.deleting_at is None
    ]
    return max(found, key=lambda life: life.created_at, default=None)


def tell_ready(api: Api, host: Host, *, ready: bool) -> None:
    """Write the Ready condition of the Node, as the kubelet does when the machine stops and after the boot."""
    status: Object = {"conditions": [_ready(ready)]}
    if ready:
        status["nodeInfo"] = {"bootID": host.boot_id}
    with suppress_not_found():  # the Node may be deleted while the machine is down
        api.patch(f"/api/v1/nodes/{host.name}/status", {"status": status}, "application/strategic-merge-patch+json")


def tell_pods_ready(api: Api, node: str, *, ready: bool) -> None:
    """Write the Ready condition and the containers of the node's pods, as the kubelet does when they stop and when it
    has started them again.
    """
    for pod in api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}"):
        meta, word = pod["metadata"], "True" if ready else "False"
        if "tests/never-ready" in meta.get("annotations", {}):
            continue
        if meta.get("deletionTimestamp") or pod["status"].get("phase") != "Running" or condition(pod, "Ready") == word:
            continue
        conditions = [
            {"type": kind, "status": word, "lastTransitionTime": _now()} for kind in ("Ready", "ContainersReady")
        ]
        containers = [
            {**each, "ready": ready, "restartCount": each["restartCount"] + ready}
            for each in pod["status"].get("containerStatuses", ())
        ]
        with suppress_not_found():
            api.patch(
                f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status",
                {"status": {"conditions": conditions, "containerStatuses": containers}},
                "application/strategic-merge-patch+json",
            )


@contextlib.contextmanager
def suppress_not_found() -> Iterator[None]:
    """Ignore a 404 error, because another client may have just deleted the object."""
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


def _ready(ready: bool) -> Object:
    return {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "kubelet is posting ready status" if ready else "node is shutting down",
        "lastHeartbeatTime": _now(),
        "lastTransitionTime": _now(),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def in_own_namespaces(argv: tuple[str, ...], secrets: Path) -> tuple[str, ...]:
    """Wrap the command so that it runs in separate mount and process namespaces, and finds the content of `secrets` at
    the path at which a pod finds its ServiceAccount's token.

    Needs root. PID 1 of the new namespace is a shell, the host's first process, so `nsenter` into PID 1 stays inside.
    The command has a mount namespace of its own, as a container has.
    """
    assert shutil.which("unshare"), "unshare (util-linux) is needed to run an agent as in a container"
    script = (
        "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && "
        'mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount && shift && unshare -m -- "$@"; exit $?'
    )
    return (
        "unshare",
        "-m",
        "-p",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        script,
        "sh",
        str(secrets),
        *argv,
    )
