"""Tests that `careen shadow`, which decides by the library alone, agrees with each binding of `careen scheduler`: the
running scheduler does not differ from the library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cluster.harness.machines.schedulers import NAME, Schedulers, configuration
from tests.cluster.harness.measures.drains import apply
from tests.cluster.harness.measures.varied import varied_cluster
from tests.cluster.test_shadow import Shadow

pytestmark = pytest.mark.cluster


def test_the_shadow_agrees_with_every_binding_of_the_scheduler(schedulers: Schedulers, tmp_path: Path) -> None:
    apply(schedulers.plane.admin, varied_cluster(36, 40).nodes)
    (tmp_path / "followed.yaml").write_text(yaml.safe_dump(configuration()))
    shadow = Shadow(schedulers.plane, tmp_path, "followed", "--scheduler-config", str(tmp_path / "followed.yaml"))
    schedulers.start().says("careen schedules")
    for number in range(60):
        label = {"app": f"app-{number % 5}"}
        schedulers.pods([f"p{number}"], labels=label, affinity=_apart(label) if number % 3 == 0 else {})
    schedulers.all_bound()
    code, said = shadow.said()
    assert (code, said["disagreed"], said["agreement"]) == (0, 0, 1), said
    assert said["agreed"] >= 50, said
    assert configuration()["profiles"] == [{"schedulerName": NAME}]


def _apart(labels: dict[str, str]) -> object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
