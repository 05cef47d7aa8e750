"""Three machines that really boot, and their control plane. They share one network bridge, one folder and one process
tree.

The lab runs in separate namespaces (`in-own-namespaces`), so it uses no names, addresses or ports of the computer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

from tests.cluster.harness.objects import condition
from tests.nodes.harness.control_plane import ADDRESS, SERVICE_ADDRESS, ControlPlane
from tests.nodes.harness.machine import Machine
from tests.nodes.harness.paths import CACHE, REPOSITORY
from tests.patience import wait_until

NAMES = ("n1", "n2", "n3")


class Lab:
    """A control plane and three machines. When the constructor returns, every node is Ready. `close` ends
    everything.
    """

    def __init__(self) -> None:
        self.folder = CACHE / "run"
        _remove(self.folder)
        _bridge()
        self.plane = ControlPlane(self.folder / "plane", NAMES)
        self.machines = [self._machine(number, name) for number, name in enumerate(NAMES, 1)]
        for machine in self.machines:
            machine.make()
            machine.power_on()
        wait_until(self.all_ready, lambda: f"every node is Ready\n{self.consoles()}")

    def all_ready(self) -> bool:
        self.plane.check()
        nodes = self.plane.admin.list("/api/v1/nodes")
        return [condition(node, "Ready") for node in nodes] == ["True"] * len(NAMES)

    def have_reported_ready_since(self, instant: datetime) -> bool:
        """Whether each kubelet has written the status of its node after `instant` (whole seconds) and reports Ready."""
        statuses = [node["status"]["conditions"] for node in self.plane.admin.list("/api/v1/nodes")]
        reports = [each for conditions in statuses for each in conditions if each["type"] == "Ready"]
        written = [datetime.fromisoformat(each["lastHeartbeatTime"]) for each in reports if each["status"] == "True"]
        return len(written) == len(NAMES) and all(at > instant for at in written)

    def consoles(self) -> str:
        """Return the last console output of each machine."""
        logs = [machine.folder / "console.log" for machine in self.machines]
        return "\n".join(f"--- {log}\n{log.read_text(errors='replace')[-1500:]}" for log in logs if log.exists())

    def kubectl(self, *words: str, check: bool = True, given: str | None = None) -> str:
        """Run kubectl and return its output. With `check`, a failure of kubectl is an error. Without `check`, the
        output includes the text of failures.
        """
        program = shutil.which("kubectl") or str(REPOSITORY / ".cache" / "bin" / "kubectl")
        done = subprocess.run(
            [program, *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "KUBECONFIG": str(self.plane.folder / "admin.kubeconfig")},
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def close(self) -> None:
        for machine in self.machines:
            machine.power_off()
        self.plane.close()

    def _machine(self, number: int, name: str) -> Machine:
        plane = self.plane
        return Machine(
            name=name,
            number=number,
            folder=self.folder / name,
            kubeconfig=plane.kubeconfig(name, "/etc/lab/ca.crt"),
            certificate_authority=plane.certificate_authority.read_bytes(),
        )


def _remove(folder: Path) -> None:
    """Empty the folder of an earlier run. The mounts of that run ended with its namespaces."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _bridge() -> None:
    for words in (
        "link add br0 type bridge",
        f"addr add {ADDRESS}/24 dev br0",
        f"addr add {SERVICE_ADDRESS}/32 dev br0",
        "link set br0 up",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
