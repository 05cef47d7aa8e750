"""The alerts speak of metrics that exist, with labels and phases that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.agent.metrics import Metrics
from careen.core.gates import GATES
from careen.core.phases import Phase
from tests.architecture.source_tree import ROOT

RULES: dict[str, Any] = yaml.safe_load((ROOT / "manifests" / "alerts" / "alerts.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
names = [alert["alert"] for alert in ALERTS]


def exported() -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", Metrics("n1").exposition().decode(), re.MULTILINE))


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_an_alert_asks_for_metrics_that_the_agent_exports(alert: dict[str, Any]) -> None:
    asked = set(re.findall(r"\b(?:careen|kured)_\w+", alert["expr"]))
    assert asked
    assert asked - exported() == set()


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_an_alert_asks_for_phases_and_gates_that_exist(alert: dict[str, Any]) -> None:
    phases = {name for value in re.findall(r'phase=~?"([^"]+)"', alert["expr"]) for name in value.split("|")}
    gates = {name for value in re.findall(r'gate=~?"([^"]+)"', alert["expr"]) for name in value.split("|")}
    assert phases <= {phase.value for phase in Phase}
    assert gates <= {gate.name for gate in GATES}


def test_the_alert_gate_can_leave_all_of_them_out_by_one_expression() -> None:
    assert [name for name in names if not re.match("^Careen", name)] == []


def test_every_phase_under_a_claim_is_watched_for_being_held_too_long() -> None:
    (held,) = (alert for alert in ALERTS if alert["alert"] == "CareenClaimHeldLong")
    for phase in set(Phase) - {Phase.IDLE, Phase.WAITING, Phase.FAILED}:
        assert phase.value in held["expr"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on the PATH")
def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(RULES))
    done = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
