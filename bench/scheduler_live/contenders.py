"""careen's scheduler and kube-scheduler as processes with the same rights and the same profile on one API server."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.harness.machines.agents import CAREEN_PYTHONPATH, clean_environment
from tests.cluster.harness.machines.control_plane import CONTROL_PLANE, ControlPlane
from tests.cluster.harness.machines.processes import Program, free_port, processor_seconds

NAMES: Final = {"careen": "careen-scheduler", "kube": "real-scheduler"}
"""The schedulerName of the pods of each contender."""
CALLED: Final = {"careen": "careen scheduler", "kube": "kube-scheduler"}
QPS: Final = 5000  # kube-scheduler's default of 50 would be what is measured

_START_SECONDS: Final = 4.0


class Contender:
    """A running scheduler. `who`: careen or kube. `is_exact`: it checks and scores every node on one thread."""

    def __init__(self, plane: ControlPlane, who: str, number: int, *, is_exact: bool) -> None:
        folder = plane.folder / "contenders"
        folder.mkdir(exist_ok=True)
        config = folder / f"{who}-{number}.yaml"
        config.write_text(yaml.safe_dump(_configuration(plane, who, is_exact=is_exact)))
        argv: tuple[str, ...]
        if who == "careen":
            port = str(free_port())
            argv = (sys.executable, "-m", "careen", "scheduler", "--config", str(config), "--metrics-port", port)
            argv += ("--kubeconfig", str(plane.folder / "scheduler.kubeconfig"), "-v", "0")
        else:
            argv = (str(CONTROL_PLANE), "scheduler", f"--config={config}", "--secure-port=0", "--v=0")
        self.who = who
        self._program = Program(
            who,
            argv,
            guardian=plane.guardian,
            log=folder / f"{who}-{number}.log",
            env={**clean_environment(), "PYTHONPATH": CAREEN_PYTHONPATH},
        )

    def is_alive(self) -> None:
        """Raises an error with its last lines if it has ended."""
        if self._program.exit_code() is not None:
            raise RuntimeError(f"{self.who} ended:\n{self._program.tail()}")

    async def quiet(self) -> None:
        """Until it has done what there was to do: its processor is nearly idle for two seconds."""
        await asyncio.sleep(_START_SECONDS)
        before = -1.0
        while (used := self.processor_seconds()) - before > 0.1:
            self.is_alive()
            before = used
            await asyncio.sleep(2.0)

    def processor_seconds(self) -> float:
        return processor_seconds(self._program.pid)

    def resident_mib(self) -> float:
        pages = int(Path(f"/proc/{self._program.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def most_mib(self) -> float:
        """Resident at any time."""
        fields = dict(each.split(":", 1) for each in Path(f"/proc/{self._program.pid}/status").read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / 1024

    def stop(self) -> None:
        self._program.stop(30)


def _configuration(plane: ControlPlane, who: str, *, is_exact: bool) -> dict[str, Any]:
    connection = {"kubeconfig": str(plane.folder / "scheduler.kubeconfig")} if who == "kube" else {}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {**connection, "qps": QPS, "burst": 2 * QPS},
        "profiles": [{"schedulerName": NAMES[who]}],
        **({"parallelism": 1, "percentageOfNodesToScore": 100} if is_exact else {}),
    }
