"""The demo's agents: one real `careen agent` process per node, killed with its host and started again with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import careen
import scheduler_core
from drydock.hosts.machines import SENTINEL, SimulatedHost
from drydock.rollout.kubeconfig import write_kubeconfig

# As the kubelet does with a container that exits: the restart delay grows, from one second on.
_FIRST_RESTART_SECONDS = 1.0
_LONGEST_RESTART_SECONDS = 10.0
# A starting interpreter costs most of a core for a second: more than this many at once only delay each other.
_STARTS_AT_ONCE = 2
_START_SHARE_SECONDS = 0.5

AGENT_USER = "careen-agent-"


def agent_user(node: str) -> str:
    """The agent's user name for the API server."""
    return f"{AGENT_USER}{node}"


@dataclass(slots=True, kw_only=True)
class _Agent:
    host: SimulatedHost
    command: list[str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    supervisor: asyncio.Task[None] | None = None
    crashes: list[int] = field(default_factory=list)


class AgentProcesses:
    def __init__(self, folder: Path, server_url: str, *, extra_arguments: Sequence[str] = ()) -> None:
        self._folder = folder
        self._url = server_url
        self._extra = list(extra_arguments)
        self._agents: dict[str, _Agent] = {}
        self._starting = asyncio.Semaphore(_STARTS_AT_ONCE)

    def add(self, host: SimulatedHost) -> None:
        config = write_kubeconfig(
            self._folder / f"{host.name}.kubeconfig", self._url, user=agent_user(host.name), namespace="careen"
        )
        command = [
            *dies_with_us(),
            sys.executable,
            "-m",
            "careen",
            "agent",
            "--node-id",
            host.name,
            "--kubeconfig",
            str(config),
            "--host-root",
            str(host.root),
            "--boot-id-file",
            str(host.boot_id_file),
            "--reboot-sentinel",
            SENTINEL,
            "--host-exec",
            "direct",
            "--reboot-command",
            host.reboot_command,
            "--ds-namespace",
            "careen",
            "--ds-name",
            "careen",
            "--metrics-port",
            "0",
            *self._extra,
        ]
        self._agents[host.name] = _Agent(host=host, command=command, log=self._folder / f"{host.name}.log")

    def start(self, name: str) -> None:
        """Runs the node's agent until `kill`; starts it again whenever it exits."""
        agent = self._agents[name]
        if agent.supervisor is None or agent.supervisor.done():
            agent.supervisor = asyncio.create_task(self._supervise(agent))

    def kill(self, name: str) -> None:
        """The host goes down: the agent has no time to clean up."""
        agent = self._agents[name]
        if agent.supervisor is not None:
            agent.supervisor.cancel()
            agent.supervisor = None
        _kill_group(agent.process)
        agent.process = None

    def crash(self, name: str) -> None:
        """Kills the process while its host stays up, as the kernel does when memory runs out. The agent is started
        again."""
        _kill_group(self._agents[name].process)

    @property
    def crashes(self) -> dict[str, list[int]]:
        """Exit codes of agents that exited unexpectedly, by node."""
        return {name: agent.crashes for name, agent in self._agents.items() if agent.crashes}

    @property
    def tracebacks(self) -> list[str]:
        """The nodes whose agents logged an exception that they did not expect."""
        logs = {name: agent.log for name, agent in self._agents.items() if agent.log.exists()}
        return [name for name, log in logs.items() if "Traceback (most recent" in log.read_text(errors="replace")]

    def log_of(self, name: str) -> Path:
        return self._agents[name].log

    async def stop(self) -> None:
        """Ends every process and waits for the ends."""
        processes = [agent.process for agent in self._agents.values() if agent.process is not None]
        for name in self._agents:
            self.kill(name)
        await asyncio.gather(*(process.wait() for process in processes))

    async def _supervise(self, agent: _Agent) -> None:
        pause = _FIRST_RESTART_SECONDS
        while True:
            code = await self._run_once(agent)
            if code != -signal.SIGKILL:
                agent.crashes.append(code)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_RESTART_SECONDS, pause * 2)

    async def _run_once(self, agent: _Agent) -> int:
        async with self._starting:
            with agent.log.open("ab") as log:
                # In a separate session: processes that the agent starts are killed with its host.
                agent.process = await asyncio.create_subprocess_exec(
                    *agent.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=agent.host.root,
                    env=clean_environment(),
                )
            await asyncio.sleep(_START_SHARE_SECONDS)
        return await agent.process.wait()


# prctl(2) sends the signal only if the parent dies after the call. If we died before, the parent is already another
# one.
_UNLESS_ALONE = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'


def dies_with_us() -> list[str]:
    """The beginning of a command line that makes the kernel end an agent with the demo; empty without setpriv."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "sh", "-c", _UNLESS_ALONE, "sh", str(os.getpid())] if setpriv else []


def clean_environment() -> dict[str, str]:
    """This process's environment without what an agent would read as settings; careen and scheduler_core are in
    PYTHONPATH."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CAREEN_", "KURED_", "KUBERNETES_"))}
    roots = [str(Path(package.__path__[0]).resolve().parent) for package in (careen, scheduler_core)]
    kept["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [kept.get("PYTHONPATH", "")])])
    return kept


def _kill_group(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
