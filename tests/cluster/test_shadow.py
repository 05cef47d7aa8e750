"""Tests `careen shadow`, which compares the bindings of the real scheduler with the choices of scheduler_core. If the
scheduler and scheduler_core have the same configuration, they agree. If not, `careen shadow` reports disagreements.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.harness.machines.agents import CAREEN_PYTHONPATH, clean_environment
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.measures.drains import apply, sweep
from tests.cluster.harness.measures.varied import NAMESPACE, varied_cluster
from tests.patience import ended, wait_until

pytestmark = pytest.mark.cluster

SEED = 31
NODES = 120
# The configuration with which the harness starts the scheduler. By default, kube-scheduler scores a part of the nodes.
TOLD = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
"""


class Shadow:
    """Runs `careen shadow` in a separate process, which the method `said` ends."""

    def __init__(self, plane: ControlPlane, folder: Path, name: str, *words: str) -> None:
        self._errors = folder / f"{name}.err"
        self._output = folder / f"{name}.json"
        with self._errors.open("w") as errors, self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "careen", "shadow", "--output", "json", "--last", "1000", *words],
                stdout=output,
                stderr=errors,
                text=True,
                env={
                    **clean_environment(),
                    "PYTHONPATH": CAREEN_PYTHONPATH,
                    "KUBECONFIG": str(plane.folder / "admin.kubeconfig"),
                },
            )
        wait_until(lambda: "careen follows " in self.words(), self.words)

    def words(self) -> str:
        """Return what the shadow has written to stderr so far."""
        return self._errors.read_text()

    def said(self) -> tuple[int, dict[str, Any]]:
        """End the shadow. Return its exit code and its JSON output."""
        self.process.terminate()
        code = ended(self.process, self.words)
        said: dict[str, Any] = json.loads(self._output.read_text())
        return code, said


def test_careen_shadow_agrees_with_a_scheduler_of_the_same_configuration(plane: ControlPlane, tmp_path: Path) -> None:
    cluster = varied_cluster(SEED, NODES, fill=0.3)
    apply(plane.admin, cluster.nodes)
    (tmp_path / "told.yaml").write_text(TOLD)
    told = Shadow(plane, tmp_path, "told", "--scheduler-config", str(tmp_path / "told.yaml"))
    untold = Shadow(plane, tmp_path, "untold")
    apply(plane.admin, cluster.workloads)
    wait_until(lambda: sum(1 for each in plane.admin.list("/api/v1/pods") if each["spec"].get("nodeName")) >= 100)
    (code, right), (_, other) = told.said(), untold.said()
    sweep(plane.admin, NAMESPACE)
    print(*(f"{name}: {each}" for name, each in (("told", right), ("untold", other))), sep="\n")
    assert right["agreed"] + right["disagreed"] >= 30, "too few pods were compared, so this test proves nothing"
    assert (code, right["agreement"] >= 0.95) == (0, True), right
    assert right["cannotSay"] <= right["agreed"]
    # Without a configuration, the shadow assumes that the scheduler scores a part of the nodes, and names more nodes.
    assert other["meanSet"] > right["meanSet"]
