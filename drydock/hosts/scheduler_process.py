"""`careen scheduler` as a process of its own on the embedded API server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from drydock.hosts.agent_processes import clean_environment, dies_with_us
from drydock.rollout.kubeconfig import write_kubeconfig

SCHEDULER_USER = "system:kube-scheduler"
# Every node is checked, as by the embedded cluster's own loop; one process needs no Lease.
_CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
leaderElection: {leaderElect: false}
"""
_RESTART_SECONDS = 1.0


async def run_scheduler_process(folder: Path, server_url: str) -> None:
    """Until cancelled; a process that exits is started again. Its log is `folder`/scheduler.log."""
    config = folder / "scheduler.yaml"
    config.write_text(_CONFIGURATION)
    kubeconfig = write_kubeconfig(folder / "scheduler.kubeconfig", server_url, user=SCHEDULER_USER)
    command = [*dies_with_us(), sys.executable, "-m", "careen", "scheduler"]
    command += ["--config", str(config), "--kubeconfig", str(kubeconfig), "--identity", "demo"]
    while True:
        with (folder / "scheduler.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment()
            )
        try:
            await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await asyncio.sleep(_RESTART_SECONDS)
