"""Measures one resident agent on the embedded API server: memory, requests when idle, and the seconds from the need of
a reboot to the taint.

    python -m bench.agent [--idle-seconds 600] [--taints 10]

The agent is the real process that the DaemonSet runs, with the image's bytecode. Only the cluster and the host are
simulated.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.agent.configured import a_quiet_prometheus, everything
from bench.agent.memory_group import MemoryGroup, memory_group
from drydock.server.testing import RunningServer, server_in_thread

ROOT = Path(__file__).parents[2]
NOT_NEEDED = "/(tests?|idlelib|lib2to3|site-packages/(mypy|mypyc|pip|hypothesis|scipy|kubernetes/aio))/"
NODE = "bench-node"
NAMESPACE = "careen"
TAINT = "careen.dev/reboot"
PACKAGES = (
    "kopf",
    "kubernetes",
    "aiohttp",
    "pydantic",
    "prometheus_client",
    "tenacity",
    "click",
    "msgspec",
    "yaml",
    "requests",
    "prometheus_api_client",
    "numpy",
    "rich",
)


@dataclass(frozen=True)
class AgentMemory:
    """In MiB: resident memory, and the part that no other process shares."""

    resident: float
    private: float


def memory_of(pid: int) -> AgentMemory:
    """Read from /proc/PID/smaps_rollup."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return AgentMemory(kib["Rss"] / 1024, (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024)


def seed(server: RunningServer) -> None:
    """Stores a Node, the DaemonSet with the lock, and the ConfigMap that the agent watches."""
    server.seed(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {}},
            "spec": {},
            "status": {
                "nodeInfo": {"bootID": "boot-1"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "careen", "namespace": NAMESPACE},
            "spec": {
                "selector": {"matchLabels": {"app": "careen"}},
                "template": {
                    "metadata": {"labels": {"app": "careen"}},
                    "spec": {"containers": [{"name": "agent", "image": "careen"}]},
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": NAMESPACE},
            "data": {"config.yaml": ""},
        },
    )


def compile_as_the_image(folder: Path) -> dict[str, str]:
    """Compiles the agent and its libraries without docstrings, as in the image. Returns the environment with which
    an agent uses this bytecode."""
    environment = {"PYTHONPYCACHEPREFIX": str(folder)}
    paths = sysconfig.get_paths()
    for sources in (paths["stdlib"], paths["purelib"], ROOT / "operator", ROOT / "scheduler_core"):
        subprocess.run(
            [
                sys.executable,
                ROOT / "mk/image/bytecode.py",
                "--skip",
                NOT_NEEDED,
                sources,
            ],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return environment


@contextlib.contextmanager
def an_agent(
    server: RunningServer,
    folder: Path,
    *flags: str,
    entry: tuple[str, ...] = ("-m", "careen"),
    group: MemoryGroup | None = None,
    **environment: str,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the agent during the `with` block, and ends it by SIGTERM."""
    (folder / "var/run").mkdir(parents=True, exist_ok=True)
    (folder / "boot_id").write_text("boot-1\n")
    kubeconfig = server.write_kubeconfig(folder / "kubeconfig", user="agent")
    command = [
        *(group.joined if group is not None else ()),
        sys.executable,
        *entry,
        "agent",
        f"--node-id={NODE}",
        f"--kubeconfig={kubeconfig}",
        f"--host-root={folder}",
        f"--boot-id-file={folder / 'boot_id'}",
        "--host-exec=direct",
        "--reboot-command=/bin/false",
        f"--ds-namespace={NAMESPACE}",
        "--ds-name=careen",
        "--metrics-host=127.0.0.1",
        "--metrics-port=0",
        *flags,
    ]
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def start(server: RunningServer, folder: Path, times: int = 5) -> None:
    """Prints the processor time of an agent from its start to the end of its first turn."""
    seconds = []
    for _ in range(times):
        with an_agent(server, folder, "--sleep=off") as process:
            port = wait_for_port(folder / "agent.log")
            while not is_ready(port):
                time.sleep(0.005)
            seconds.append(processor_seconds(process.pid))
    print(
        f"agent's processor time until ready, s   {min(seconds):.2f} / {statistics.median(seconds):.2f} / "
        f"{max(seconds):.2f}   (least / median / greatest of {times})"
    )


def processor_seconds(pid: int) -> float:
    """User and system time of all threads, from /proc/PID/stat. Counts the fields after the process name in
    parentheses, because the name may contain spaces."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_port(log: Path) -> int:
    """The port of metrics and probes, as soon as the agent's log names it."""
    while not (found := re.search(r"on port (\d+)", log.read_text())):
        time.sleep(0.005)
    return int(found[1])


def is_ready(port: int) -> bool:
    """Whether the readiness probe passes: the agent has completed a turn."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def idle(server: RunningServer, folder: Path, seconds: float) -> None:
    """Prints the memory and the requests of an idle agent."""
    with an_agent(server, folder, "--sleep=off") as process:
        time.sleep(20)
        before = len(server.api.requests)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise SystemExit(f"the agent ended with this log: {(folder / 'agent.log').read_text()}")
            time.sleep(min(15, max(0.1, deadline - time.monotonic())))
            print(
                f"\r  the agent stays idle for {max(0, deadline - time.monotonic()):.0f} more seconds ",
                end="",
                file=sys.stderr,
            )
        print("\r", end="", file=sys.stderr)
        memory = memory_of(process.pid)
        made = list(server.api.requests)[before:]
    print(f"idle agent, resident memory, MiB        {memory.resident:.1f}")
    print(f"idle agent, private memory, MiB         {memory.private:.1f}")
    print(f"requests of the idle agent in {seconds:.0f} s {len(made)}")
    for (verb, resource), count in sorted(Counter((record.verb, record.resource) for record in made).items()):
        print(f"- {verb} {resource:<32} {count}")


def asleep(server: RunningServer, folder: Path, seconds: float, times: int) -> None:
    """Prints the memory, processor time and requests of a sleeping agent, and how fast a need wakes it. `times` is at
    most four: an agent sleeps at most six times in an hour."""
    (folder / "run").mkdir(parents=True)
    sentinel = folder / "var/run/reboot-required"
    flags = ("--sleep=auto", "--host-lock-dir=/run/careen", "--reboot-days=")
    with memory_group() as group, an_agent(server, folder, *flags, group=group) as process:
        wait_until_asleep(process.pid)
        time.sleep(2)
        before, busy = len(server.api.requests), processor_seconds(process.pid)
        time.sleep(seconds)
        memory, busy = memory_of(process.pid), processor_seconds(process.pid) - busy
        made = len(server.api.requests) - before
        working_set = group.working_set() if group is not None else None
        before, started = len(server.api.requests), processor_seconds(process.pid)
        relabel(server, "woken")
        while is_sleeper(process.pid):
            time.sleep(0.01)
        wait_until_asleep(process.pid)
        wake = processor_seconds(process.pid) - started, len(server.api.requests) - before
        leads, costs = [], []
        for _ in range(times):
            before, started = len(server.api.requests), processor_seconds(process.pid)
            sentinel.touch()
            leads.append(wait_until_tainted(server, expected=True))
            sentinel.unlink()
            wait_until_tainted(server, expected=False)
            wait_until_asleep(process.pid)
            costs.append((processor_seconds(process.pid) - started, len(server.api.requests) - before))
    print(f"asleep, resident memory, MiB            {memory.resident:.1f}")
    print(f"asleep, private memory, MiB             {memory.private:.1f}")
    seen = "not measured: no cgroup can be made" if working_set is None else f"{working_set:.1f}"
    print(f"asleep, working set of its cgroup, MiB  {seen}")
    print(f"asleep, processor time, millicores      {1000 * busy / seconds:.1f}")
    print(f"asleep, requests in {seconds:.0f} s              {made}")
    print(
        f"from the need to the taint, asleep, s   {min(leads):.1f} / {statistics.median(leads):.1f} / "
        f"{max(leads):.1f}   (least / median / greatest of {times})"
    )
    print(f"a wake by a change of the Node, and sleep {wake[0]:.2f} s of processor time, {wake[1]} requests")
    print(
        f"a wake, a need and its end, and sleep   {statistics.median(each for each, _ in costs):.2f} s of processor "
        f"time, {statistics.median(each for _, each in costs):.0f} requests (medians)"
    )


def relabel(server: RunningServer, value: str) -> None:
    """A change of the Node that wakes a sleeping agent."""
    node = server.get("nodes", NODE)
    assert node is not None
    server.seed({**node, "metadata": {**node["metadata"], "labels": {"bench": value}}})


def is_sleeper(pid: int) -> bool:
    return b"agent/asleep/" in Path(f"/proc/{pid}/cmdline").read_bytes()


def wait_until_asleep(pid: int, limit: float = 120) -> None:
    """An agent that sleeps is the same process with another program."""
    started = time.monotonic()
    while not is_sleeper(pid):
        if time.monotonic() - started > limit:
            raise SystemExit(f"after {limit:.0f} s the agent is still awake")
        time.sleep(0.05)


def with_everything(server: RunningServer, folder: Path, seconds: float) -> None:
    """Prints the memory of an agent that uses every feature, while a Prometheus query keeps the node from rebooting."""
    (folder / "var/run").mkdir(parents=True)
    with a_quiet_prometheus() as url, an_agent(server, folder, *everything(folder, url)) as process:
        wait_until_tainted(server, expected=True)
        time.sleep(seconds)
        memory = memory_of(process.pid)
        reason = server.get("nodes", NODE)["metadata"]["annotations"]["careen.dev/reason"]
    print(f"with all features, resident memory, MiB {memory.resident:.1f}   (the node waits: {reason})")
    print(f"with all features, private memory, MiB  {memory.private:.1f}")


def imports(log: str) -> None:
    """Which of the large packages a running agent has loaded, from the output of PYTHONPROFILEIMPORTTIME."""
    loaded = {
        line.rsplit("|", 1)[1].strip().split(".")[0]
        for line in log.splitlines()
        if line.startswith("import time:") and "|" in line
    }
    print(f"packages loaded                         {', '.join(name for name in PACKAGES if name in loaded)}")
    print(f"packages not loaded                     {', '.join(name for name in PACKAGES if name not in loaded)}")


def is_tainted(node: dict[str, Any] | None) -> bool:
    return any(taint["key"] == TAINT for taint in ((node or {}).get("spec") or {}).get("taints") or ())


def wait_until_tainted(server: RunningServer, expected: bool, limit: float = 60) -> float:
    """The seconds until the Node has the soft taint, or with `expected` false until it has none."""
    started = time.monotonic()
    while is_tainted(server.get("nodes", NODE)) is not expected:
        if time.monotonic() - started > limit:
            raise SystemExit(f"after {limit:.0f} s the node is {'not ' if expected else 'still '}tainted")
        time.sleep(0.02)
    return time.monotonic() - started


def taints(server: RunningServer, folder: Path, times: int) -> None:
    """How fast the agent sets and removes the taint when the host begins and ceases to need a reboot. A paused lock
    and a closed window keep the node from rebooting."""
    held = {"metadata": {"annotations": {"weave.works/kured-node-lock": '{"nodeID":"manual"}'}}}
    daemonset = server.get("daemonsets", "careen", NAMESPACE)
    assert daemonset is not None
    server.seed({**daemonset, "metadata": {**daemonset["metadata"], **held["metadata"]}})
    sentinel = folder / "var/run/reboot-required"
    leads = []
    with an_agent(server, folder, "--sleep=off", "--reboot-days=", PYTHONPROFILEIMPORTTIME="1"):
        time.sleep(5)
        for _ in range(times):
            sentinel.touch()
            leads.append(wait_until_tainted(server, expected=True))
            sentinel.unlink()
            wait_until_tainted(server, expected=False)
    imports((folder / "agent.log").read_text())
    print(
        f"from the need for a reboot to the taint, s {min(leads):.1f} / {statistics.median(leads):.1f} / "
        f"{max(leads):.1f}   (least / median / greatest of {times})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle-seconds", type=float, default=600)
    parser.add_argument("--taints", type=int, default=10)
    arguments = parser.parse_args()
    print(shlex.join([Path(sys.executable).name, "-m", "bench.agent", *sys.argv[1:]]))
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ.update(compile_as_the_image(Path(bytecode)))
        for measure in (
            start,
            lambda server, folder: idle(server, folder, arguments.idle_seconds),
            lambda server, folder: asleep(server, folder, min(120, arguments.idle_seconds), min(4, arguments.taints)),
            lambda server, folder: with_everything(server, folder, min(60, arguments.idle_seconds)),
            lambda server, folder: taints(server, folder, arguments.taints),
        ):
            with server_in_thread() as server, tempfile.TemporaryDirectory() as folder:
                seed(server)
                measure(server, Path(folder))


if __name__ == "__main__":
    main()
