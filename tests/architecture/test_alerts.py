"""Tests that the alerts use only existing metrics, labels and phases, and fire in their scenarios."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.agent.telemetry.metrics import Metrics
from careen.agent.telemetry.shadow_metrics import ShadowMetrics, Traffic
from careen.core.facts.observation import Alert
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy
from careen.core.gates import GATES
from careen.core.gates.alerts import blocks
from careen.shadow.outcomes import Agreement, AgreementReason, Compared
from careen.shadow.tally import RunCounts
from tests.architecture.source_tree import ROOT
from tests.patience import run

FILES = [ROOT / "manifests" / folder / "alerts.yaml" for folder in ("alerts", "shadow-monitoring")]
RULES: dict[str, Any] = {
    "groups": [group for file in FILES for group in yaml.safe_load(file.read_text())["spec"]["groups"]]
}
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
names = [alert["alert"] for alert in ALERTS]


def exported() -> set[str]:
    """Return the names of all metrics that an agent or a shadow exports."""
    return types_in(Metrics("n1").exposition()) | types_in(SHADOW.exposition())


def types_in(exposition: bytes) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", exposition.decode(), re.MULTILINE))


COMPARED = Compared(pod="a/b", profile="default-scheduler", at="", reason=AgreementReason.FIRST, node="n1")
TALLY = RunCounts()
TALLY.add(COMPARED)
TRAFFIC = Traffic(events=0, bytes=0, lists=0, troubled=0, waiting=0, nodes=0, pods=0)
SHADOW = ShadowMetrics(TALLY, lambda: TRAFFIC)


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_each_alert_uses_only_metrics_that_careen_exports(alert: dict[str, Any]) -> None:
    asked = set(re.findall(r"\b(?:careen|kured)_\w+", alert["expr"]))
    assert asked
    assert asked - exported() == set()


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_each_alert_uses_only_existing_phases_gates_and_outcomes(alert: dict[str, Any]) -> None:
    def named(label: str) -> set[str]:
        values = re.findall(rf'\b{label}=~?"([^"]+)"', alert["expr"])
        return {name for value in values for name in value.split("|")}

    assert named("phase") <= {phase.value for phase in Phase}
    assert named("gate") <= {gate.name for gate in GATES}
    assert named("outcome") <= {outcome.value for outcome in Agreement}


@pytest.mark.parametrize("name", names)
def test_careens_own_alerts_never_block_a_reboot(name: str) -> None:
    assert not blocks(Alert(name=name), AlertPolicy())


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_each_alert_fires_once_per_node_even_if_the_nodes_agent_had_several_pods(alert: dict[str, Any]) -> None:
    """Each pod of the agent has its own labels pod, container and instance. An alert that kept these labels would start
    again when a new pod replaces the agent's pod.
    """
    left = outside_of_aggregations(alert["expr"])
    assert "careen_" not in left, left
    assert set(re.findall(r"\w+", " ".join(re.findall(r"\bby \(([^)]*)\)", alert["expr"])))) <= {
        "node",
        "holder",
        "service",
        "gate",  # only inside an outer `max by (node)`, which removes this label
    }


def outside_of_aggregations(expression: str) -> str:
    """Return the query without its aggregations, such as `max by (…) (…)`."""
    while begin := re.search(r"\b(?:max|min|sum)(?: by \([^)]*\))? ?\(", expression):
        end, depth = begin.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(expression[end], 0)
            end += 1
        expression = expression[: begin.start()] + expression[end:]
    return expression


def test_the_alert_about_a_long_held_claim_covers_each_phase_of_a_reboot_in_progress() -> None:
    (held,) = (alert for alert in ALERTS if alert["alert"] == "CareenClaimHeldLong")
    # A failed node has an alert of its own. Maintenance lasts for as long as a person likes.
    for phase in set(Phase) - {Phase.IDLE, Phase.WAITING, Phase.FAILED, Phase.MAINTENANCE}:
        assert phase.value in held["expr"]


@pytest.mark.parametrize("alert", ALERTS, ids=names)
def test_each_alert_has_a_section_in_the_runbook(alert: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    anchors = {title.lower() for title in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
    runbook = alert["annotations"]["runbook"]
    assert runbook == f"docs/alerts.md#{alert['alert'].lower()}"
    assert runbook.partition("#")[2] in anchors
    assert f"[{alert['alert']}](#{alert['alert'].lower()}) | {alert['labels']['severity']} |" in page


def test_each_section_of_the_runbook_has_an_alert() -> None:
    titles = re.findall(r"^## (\w+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert sorted(titles) == sorted(names)


# ---- by Prometheus itself: `make test-cluster` installs it, and `promtool` with it ----

with_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="needs promtool, which comes with Prometheus; `make test-cluster` installs it",
)


@pytest.mark.cluster
@with_promtool
def test_promtool_accepts_the_alert_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(RULES))
    done = run(["promtool", "check", "rules", str(file)])
    assert done.returncode == 0, done.stdout + done.stderr


# One value for each minute from the start of a test; `_` is a scrape that finds nothing. At each `|` a new pod replaces
# the agent's pod, so every series is new from there on.
DAY, HOUR = 24 * 60, 60


def series(metric: str, *pods: tuple[int, int, float], labels: str = 'node="n1"') -> list[dict[str, str]]:
    """Return one time series for each pod of an agent. `pods` gives each pod as (first minute, last minute, value)."""
    return [
        {
            "series": f'{metric}{{{labels},pod="careen-{number}"}}',
            "values": " ".join(filter(None, [f"_x{start}" if start else "", f"{value:.0f}x{end - start}", "stale"])),
        }
        for number, (start, end, value) in enumerate(pods)
    ]


def counted(outcome: str, reason: str, values: str) -> dict[str, str]:
    """Return the series in which `careen shadow` counts pods with this outcome and reason. `values` has a value for
    each minute.
    """
    labels = f'profile="default-scheduler",outcome="{outcome}",reason="{reason}"'
    return {"series": f"careen_shadow_pods_total{{{labels}}}", "values": values}


# Expected alerts: alert, scraped series, {minute: labels of the firing alerts}.
STORIES: dict[str, tuple[str, list[dict[str, str]], dict[int, list[dict[str, str]]]]] = {
    "a node that needs a reboot for a week, with a new agent every second day": (
        "CareenRebootOverdue",
        series("careen_need_since_seconds", *((day * DAY, (day + 2) * DAY - 3, 0) for day in range(0, 10, 2))),
        {6 * DAY: [], 7 * DAY + 30: [{"node": "n1"}], 8 * DAY: [{"node": "n1"}], 8 * DAY + 30: [{"node": "n1"}]},
    ),
    "a node that no longer needs a reboot": (
        "CareenRebootOverdue",
        series("careen_need_since_seconds", (0, 8 * DAY, 0)),
        {8 * DAY: [{"node": "n1"}], 8 * DAY + 30: []},
    ),
    "a node that drains for three hours, with a new agent every half hour": (
        "CareenClaimHeldLong",
        [
            *series("careen_phase_since_seconds", *((at, at + 28, 0) for at in range(0, 4 * HOUR, 30))),
            *series(
                "careen_phase",
                *((at, at + 28, 1) for at in range(0, 4 * HOUR, 30)),
                labels='node="n1",phase="Draining"',
            ),
        ],
        {2 * HOUR - 5: [], 2 * HOUR + 20: [{"node": "n1"}], 3 * HOUR + 20: [{"node": "n1"}]},
    ),
    "a node that waits for hours without a claim": (
        "CareenClaimHeldLong",
        [
            *series("careen_phase_since_seconds", (0, 6 * HOUR, 0)),
            *series("careen_phase", (0, 6 * HOUR, 1), labels='node="n1",phase="Waiting"'),
        ],
        {5 * HOUR: []},
    ),
    "a node that a pod blocks for longer than the time limit, and a node that a pod blocks without a time limit": (
        "CareenPodsBlockTooLong",
        [
            *series(
                "careen_refused_since_seconds",
                *((at, at + 28, 0) for at in range(0, 4 * HOUR, 30)),
                labels='node="n1",gate="blocking-pods",code="blocking-pod"',
            ),
            *series(
                "careen_refused_longest_seconds",
                *((at, at + 28, 7200) for at in range(0, 4 * HOUR, 30)),
                labels='node="n1",gate="blocking-pods",code="blocking-pod"',
            ),
            *series(
                "careen_refused_since_seconds",
                (0, 4 * HOUR, 0),
                labels='node="n2",gate="blocking-pods-elsewhere",code="blocking-pod"',
            ),
        ],
        {2 * HOUR - 5: [], 2 * HOUR + 10: [{"node": "n1"}], 3 * HOUR + 20: [{"node": "n1"}], 4 * HOUR + 20: []},
    ),
    "a node that a person keeps down for more than a day": (
        "CareenMaintenanceLong",
        [
            *series("careen_phase_since_seconds", (0, 30 * HOUR, 0)),
            *series("careen_phase", (0, 30 * HOUR, 1), labels='node="n1",phase="Maintenance"'),
        ],
        {23 * HOUR: [], 25 * HOUR: [{"node": "n1"}], 31 * HOUR: []},
    ),
    "a failed node that has two agents for half an hour": (
        "CareenNodeFailed",
        series("careen_phase", (0, 60, 1), (30, 60, 1), labels='node="n1",phase="Failed"'),
        {40: [{"node": "n1"}]},
    ),
    "a holder that does not come back, reported by the agents of two other nodes": (
        "CareenHolderOverdue",
        [
            *series("careen_overdue_holder_timestamp_seconds", (0, 60, 0), labels='node="n2",holder="n1"'),
            *series("careen_overdue_holder_timestamp_seconds", (3, 60, 0), labels='node="n3",holder="n1"'),
        ],
        {4: [], 10: [{"holder": "n1"}], 70: []},
    ),
    "an agent that hangs, and one that sleeps for an hour and then hangs": (
        "CareenAgentStuck",
        [
            *series("careen_last_turn_seconds", (0, 180, 0)),
            *series("careen_asleep", (0, 180, 0)),
            *series("careen_last_turn_seconds", (0, 180, 0), labels='node="n2"'),
            *series("careen_asleep", (0, 60, 1), (61, 180, 0), labels='node="n2"'),
        ],
        {30: [], 40: [{"node": "n1"}], 60: [{"node": "n1"}], 75: [{"node": "n1"}, {"node": "n2"}]},
    ),
    "a node whose agent has stopped, and a node whose agent is replaced": (
        "CareenAgentMissing",
        [
            *series("kube_node_info", (0, 180, 1)),
            *series("kube_node_info", (0, 180, 1), labels='node="n2"'),
            *series("careen_last_turn_seconds", (0, 60, 0)),
            *series("careen_last_turn_seconds", (0, 60, 0), (70, 180, 0), labels='node="n2"'),
        ],
        {100: [], 120: [{"node": "n1"}], 170: [{"node": "n1"}]},
    ),
    "careen shadow, which disagrees with the scheduler on three of ten pods, and then agrees on all pods": (
        "CareenShadowDisagrees",
        [
            counted("agreed", "first", "0+7x120 840+10x600"),
            counted("disagreed", "other-node", "0+3x120 360x600"),
        ],
        {1: [], 30: [{}], 2 * HOUR: [{}], 9 * HOUR: []},
    ),
    "careen shadow, which disagrees with the scheduler on every pod": (
        "CareenShadowDisagrees",
        [counted("disagreed", "refused-node", "0+1x120")],
        {20: [], HOUR: [{}]},
    ),
    "careen shadow, which disagrees with the scheduler on three of only twelve pods in several hours": (
        "CareenShadowDisagrees",
        [counted("disagreed", "other-node", "0+1x3 3x400"), counted("agreed", "first", "0+1x9 9x400")],
        {30: [], 5 * HOUR: []},
    ),
    "a scheduler with another configuration, reported by one pod of careen shadow and then by the next pod": (
        "CareenShadowOtherConfiguration",
        series("careen_shadow_other_configuration", (0, 60, 1), (62, 120, 1), (120, 180, 0), labels='job="shadow"'),
        {10: [], 30: [{}], 100: [{}], 150: []},
    ),
    "careen shadow, which loses the right to list a kind of object": (
        "CareenShadowCannotFollow",
        series("careen_shadow_troubled_kinds", (0, 20, 0), (20, 60, 1), labels='job="shadow"'),
        {10: [], 30: [], 50: [{}]},
    ),
    "settings that no agent can use": (
        "CareenSettingsUnusable",
        [*series("careen_config_ok", (0, 60, 0)), *series("careen_config_ok", (0, 60, 0), labels='node="n2"')],
        {10: [{}]},
    ),
}


@pytest.mark.cluster
@with_promtool
@pytest.mark.parametrize("story", STORIES)
def test_an_alert_fires_exactly_once_in_its_scenario(tmp_path: Path, story: str) -> None:
    alert, scraped, moments = STORIES[story]
    (rule,) = (rule for rule in ALERTS if rule["alert"] == alert)
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "careen", "rules": [{**rule, "annotations": {}}]}]})
    )
    expected = [
        {
            "eval_time": f"{minute}m",
            "alertname": alert,
            "exp_alerts": [{"exp_labels": {**rule["labels"], **labels}} for labels in fired],
        }
        for minute, fired in moments.items()
    ]
    told = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": scraped, "alert_rule_test": expected}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(told))
    done = run(["promtool", "test", "rules", "test.yaml"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
