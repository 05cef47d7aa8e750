"""Builds Kubernetes' integration tests of the scheduler, and lets another program schedule in them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

RELEASE: Final = "1.36.3"
SCHEDULER: Final = f"{Path(sys.executable).parent / 'careen'} scheduler"
READY: Final = "careen schedules:"
# A filter of TestPreemption that lets everything pass, but for the stories with "filter" in their names.
INERT_PLUGINS: Final = "filter-plugin"
_LDFLAGS: Final = f"-s -w -X k8s.io/component-base/version.gitVersion=v{RELEASE}"
_ETCD: Final = '#!/bin/sh\nexec {controlplane} etcd --unsafe-no-fsync "$@"\n'


class Bench:
    """A directory with the changed module, the programs and their logs."""

    def __init__(self, work: Path, module: Path, *, controlplane: Path) -> None:
        self.module = module
        self.logs = work / "logs"
        self._programs = work / "programs"
        self._etcd = work / "bin"
        for each in (self.logs, self._programs, self._etcd):
            each.mkdir(parents=True, exist_ok=True)
        # Where scheduler_perf looks for its files, because the programs are built with -trimpath.
        self._sources = work / "sources"
        named = self._sources / "k8s.io/kubernetes"
        named.parent.mkdir(parents=True, exist_ok=True)
        named.unlink(missing_ok=True)
        named.symlink_to(module)
        etcd = self._etcd / "etcd"
        etcd.write_text(_ETCD.format(controlplane=shlex.quote(str(controlplane.absolute()))))
        etcd.chmod(0o755)

    def built(self, package: str) -> Path:
        """The test program of a package, such as test/integration/scheduler/filters."""
        program = self._programs / f"{package.replace('/', '-')}.test"
        build = [
            "go",
            "test",
            "-vet=off",
            "-trimpath",
            f"-ldflags={_LDFLAGS}",
            "-c",
            "-o",
            str(program),
            f"./{package}",
        ]
        environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod -buildvcs=false -p=2"}
        subprocess.run(build, cwd=self.module, env=environment, check=True)
        return program

    def ran(self, package: str, program: Path, *options: str, out: Path, scheduler: str, **more: str) -> int:
        """The output goes to the file `out`. `scheduler`: the command that schedules; "" for kube-scheduler."""
        with out.open("wb") as file:
            return subprocess.run(
                [str(program), *options],
                cwd=self.module / package,
                env={**os.environ, **self._environment(scheduler), **more},
                check=False,
                stdout=file,
                stderr=subprocess.STDOUT,
            ).returncode

    def _environment(self, scheduler: str) -> Mapping[str, str]:
        return {
            "PATH": f"{self._etcd}:{os.environ['PATH']}",
            "KUBE_INTEGRATION_ETCD_URL": "http://127.0.0.1:1",  # never somebody else's etcd
            "KUBE_CACHE_MUTATION_DETECTOR": "false",
            "TEST_SRCDIR": str(self._sources),
            "TEST_WORKSPACE": ".",
            "EXTERNAL_SCHEDULER": scheduler,
            "EXTERNAL_SCHEDULER_READY": READY,
            "EXTERNAL_SCHEDULER_LOGS": str(self.logs),
            "EXTERNAL_SCHEDULER_WITHOUT": INERT_PLUGINS,
            "EXTERNAL_SCHEDULER_KUBE": ".".join(RELEASE.split(".")[:2]),
        }
