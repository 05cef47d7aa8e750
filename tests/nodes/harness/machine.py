"""A machine: systemd-nspawn boots systemd in a separate root, with containerd and a kubelet.

It reboots like a computer: a request to its systemd or its kernel ends the container, and the harness starts the
container again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.harness.machines.hosts import Reboot
from tests.nodes.harness.control_plane import ADDRESS
from tests.nodes.harness.paths import IMAGE_STORE, MACHINE_ROOT, NODES, PROGRAMS, REPOSITORY

# The exit status of a container that was asked for a reboot; systemd-nspawn passes it on.
_REBOOT = 133
_UNITS = ("lab-boot.service", "containerd.service", "kubelet.service")
# Units that would change the computer (devices, sysctls, modules), and unneeded ones.
_MASKED = (
    *(
        "systemd-udevd.service",
        "systemd-udev-trigger.service",
        "systemd-sysctl.service",
        "systemd-modules-load.service",
    ),
    *(
        "console-getty.service",
        "getty@.service",
        "getty.target",
        "systemd-resolved.service",
        "systemd-networkd.service",
    ),
    *(
        "systemd-timesyncd.service",
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "e2scrub_reap.service",
        "fstrim.timer",
    ),
    "systemd-journald-audit.socket",
)


@dataclass(slots=True)
class Machine:
    """A machine that can boot, crash and reboot. The rules of tests/cluster read its lists `reboots` and `crashes`."""

    name: str
    number: int
    folder: Path
    kubeconfig: str
    certificate_authority: bytes
    reboots: list[Reboot] = field(default_factory=list)
    crashes: list[tuple[float, int]] = field(default_factory=list)
    by_hand: bool = False  # the story reboots the machine itself, so the next reboot is not the agent's
    _wanted: bool = True
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"10.77.0.{10 + self.number}"

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # -- people's actions on machines

    def power_on(self) -> None:
        self._wanted = True
        threading.Thread(target=self._keep_running, name=f"machine {self.name}", daemon=True).start()

    def power_off(self) -> None:
        """Power the machine off suddenly: no process of the machine can react."""
        self._wanted = False
        process = self._process
        if process is not None and process.poll() is None:
            os.kill(self.first_process(), signal.SIGKILL)
            process.wait()
            self._went_down()

    def run(self, *words: str, check: bool = True) -> str:
        """Run a command as root on the machine, and return its output."""
        command = ["nsenter", "-t", str(self.first_process()), "-a", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def want_reboot(self) -> None:
        self.run("touch", "/var/run/reboot-required")

    def first_process(self) -> int:
        """Return the process id that the machine's systemd has on the computer. Raises LookupError if the machine is
        down.
        """
        for pid in _children(self._process.pid) if self._process else ():
            if Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink():
                return pid
        raise LookupError(f"{self.name} is not up")

    # -- making it

    def make(self) -> None:
        """Create a root directory that shares unchanged files with all other machines."""
        layer, work, images = (self.folder / part for part in ("layer", "work", "containerd"))
        for folder in (layer, work, self.root):
            folder.mkdir(parents=True)
        _copy_store(IMAGE_STORE, images)
        _mount("-t", "overlay", "-o", f"lowerdir={MACHINE_ROOT},upperdir={layer},workdir={work}", "overlay", self.root)
        self._write_settings(self.root / "etc" / "lab")
        self._write_network(self.root / "etc" / "cni" / "net.d")
        self._write_units(self.root / "etc" / "systemd" / "system")

    def _write_settings(self, lab: Path) -> None:
        (lab / "static").mkdir(parents=True)
        for name in ("boot.sh", "boot-id-hook", "containerd.toml", "kubelet.yaml"):
            shutil.copy(NODES / "machine" / name, lab / name)
        (lab / "machine").write_text(f"name={self.name}\naddress={self.address}\ngateway={ADDRESS}\n")
        (lab / "kubeconfig").write_text(self.kubeconfig)
        (lab / "ca.crt").write_bytes(self.certificate_authority)
        spec = json.loads(subprocess.run([PROGRAMS / "ctr", "oci", "spec"], capture_output=True, check=True).stdout)
        spec["hooks"] = {"createContainer": [{"path": "/etc/lab/boot-id-hook", "args": ["boot-id-hook"]}]}
        (lab / "base-spec.json").write_text(json.dumps(spec))
        etc = self.root / "etc"
        (etc / "hostname").write_text(self.name + "\n")
        (etc / "machine-id").write_text(f"{self.number:032x}\n")
        (etc / "resolv.conf").unlink(missing_ok=True)
        (etc / "resolv.conf").write_text(f"nameserver {ADDRESS}\n")

    def _write_network(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        pods = f"10.244.{self.number}.0/24"
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]},
        }
        content = {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge]}
        (folder / "10-lab.conflist").write_text(json.dumps(content))
        subprocess.run(["ip", "route", "replace", pods, "via", self.address, "dev", "br0"], check=True)

    def _write_units(self, folder: Path) -> None:
        wanted = folder / "multi-user.target.wants"
        wanted.mkdir(parents=True, exist_ok=True)
        files = [NODES / "machine" / name for name in _UNITS]
        files += sorted((REPOSITORY / "manifests" / "signal" / "host").iterdir())
        for file in files:
            shutil.copy(file, folder / file.name)
            (wanted / file.name).symlink_to(f"/etc/systemd/system/{file.name}")
        for name in _MASKED:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to("/dev/null")

    # -- running it

    def _keep_running(self) -> None:
        while self._wanted:
            self._process = self._boot()
            code = self._process.wait()
            if self._wanted:
                self._went_down()
                if code != _REBOOT:
                    self.crashes.append((time.time(), code))

    def _group(self) -> str:
        """Return the name of the machine's cgroup. The name is unique, even if another working copy runs its machines
        at the same time.
        """
        return f"careen-nodes/{self.folder.parent.stat().st_ino}/{self.name}"

    def _went_down(self) -> None:
        self.reboots.append(Reboot(asked_at=time.time(), boot_left="", by_agent=not self.by_hand))
        self.by_hand = False

    def _boot(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",
            "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1" if has_unified_cgroups() else "0",
            "SYSTEMD_SECCOMP": "0",  # containers have their own profiles, and runc needs the calls that create them
        }
        command = [
            *(str(NODES / "machine" / "in-groups"), self._group()),
            *("systemd-nspawn", "--boot", "-D", str(self.root), f"--machine={self.name}", f"--hostname={self.name}"),
            *("--register=no", "--keep-unit", "--settings=no", "--capability=all", "--network-bridge=br0"),
            *("--link-journal=no", "--resolv-conf=off", "--timezone=off"),
            f"--bind-ro={PROGRAMS}:/opt/lab/bin",
            # An overlay on an overlay does not work: containers' files are on the disk itself.
            f"--bind={self.folder / 'containerd'}:/var/lib/containerd",
        ]
        with (self.folder / "console.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def has_unified_cgroups() -> bool:
    """Whether this computer has only cgroups of version 2."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def _children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def _mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _copy_store(store: Path, copy: Path) -> None:
    """Copy containerd's store. Layers and blobs never change, so they become hard links. Databases are copied."""
    subprocess.run(["cp", "-al", str(store), str(copy)], check=True)
    for database in copy.glob("**/*.db"):
        database.unlink()
        shutil.copy2(store / database.relative_to(copy), database)
