"""Values files for kured's chart, as people have published them: the chart takes each, or says by name what is wrong;
and what works differently is told in the notes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.chart.helm import CHART, helm

pytestmark = pytest.mark.cluster

FOLDER = Path(__file__).parent / "values" / "kured"
FILES = sorted(FOLDER.glob("*.yaml"))

REFUSED = {
    "16-nixos-argo.yaml": "/configuration/drainGracePeriod",
    "18-cn.yaml": "'service' not allowed",
}
SAID = {
    "01-argo-annotate.yaml": ["configuration.rebootSentinelCommand: careen runs `sh -c"],
    "04-flux-6.1.yaml": ["configuration.forceReboot: careen does not reboot a node while a disruption budget"],
    "05-homelab-template.yaml": ["configuration.rebootSentinelCommand: careen runs", "no program is named `!`"],
    "07-smtp.yaml": ["configuration.forceReboot: careen"],
    "10-discord-pending.yaml": ["tolerations: careen adds them to its own"],
    "14-aks-poc.yaml": [
        "resources.limits.memory: 64Mi is too little for a forecast",
        "configuration.lockTtl: no claim is freed because of its age",
        "tolerations: careen",
    ],
    "20-acr.yaml": ["tolerations: careen"],
    "21-all-defaults.yaml": ["NO SOFT TAINT"],
}
EVERY = [
    "configuration.rebootSentinelCommand",
    "resources.limits.memory",
    "NO SOFT TAINT",
    "tolerations: ",
    "configuration.forceReboot: ",
    "configuration.lockTtl: ",
    "extraArgs.",
]


def installed(home: Path, file: Path, *words: str) -> tuple[int, str]:
    own = ("--set", "image.repository=registry.example/careen")
    done = helm(
        home,
        "install",
        "careen",
        str(CHART),
        "--namespace",
        "careen",
        "--dry-run=client",
        "-f",
        str(file),
        *own,
        *words,
    )
    return done.returncode, done.stderr if done.returncode else done.stdout.partition("NOTES:")[2]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_published_file_is_taken_or_refused_by_name_and_never_for_its_memory(tmp_path: Path, file: Path) -> None:
    code, told = installed(tmp_path, file)
    reason = REFUSED.get(file.name, "")
    assert (code != 0, reason in told) == (bool(reason), True), told
    assert code == 0 or "memory" not in told


@pytest.mark.parametrize("file", [each for each in FILES if not REFUSED.get(each.name)], ids=lambda file: file.stem)
def test_the_notes_name_what_works_differently_and_nothing_else(tmp_path: Path, file: Path) -> None:
    _, notes = installed(tmp_path, file)
    wanted = SAID.get(file.name, [])
    assert [each for each in wanted if each not in notes] == []
    assert [each for each in EVERY if each in notes and not any(one.startswith(each) for one in wanted)] == []


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ("resources: {limits: {memory: 127Mi}}", True),
        ("resources: {limits: {memory: 128Mi}}", False),
        ("{resources: {limits: {memory: 64Mi}}, configuration: {forecast: 'off'}}", False),
    ],
)
def test_the_notes_say_when_a_memory_limit_is_too_little_for_a_forecast(
    tmp_path: Path, values: str, is_told: bool
) -> None:
    (tmp_path / "own.yaml").write_text(values)
    code, notes = installed(tmp_path, tmp_path / "own.yaml")
    assert (code, "resources.limits.memory" in notes) == (0, is_told)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("extraArgs: {force-reboot: false}", "extraArgs.force-reboot: careen passes on false"),
        ("extraArgs: {drain-timeout: 0}", "extraArgs.drain-timeout: careen passes on 0"),
        ("extraArgs: {drain-timeout: '0'}", ""),
        ("{tolerations: [{key: gpu, operator: Exists}], tolerateAllTaints: false}", ""),
        ("configuration: {forceReboot: true, forceRebootPastBudgets: true}", ""),
        ("extraArgs: {force-reboot: 'true'}", "configuration.forceReboot: "),
        ("configuration: {lockTtl: 0s}", ""),
        ("extraArgs: {lock-ttl: 4h}", "configuration.lockTtl: "),
    ],
)
def test_the_notes_name_a_value_that_kureds_chart_reads_otherwise(tmp_path: Path, values: str, told: str) -> None:
    (tmp_path / "own.yaml").write_text(values)
    code, notes = installed(tmp_path, tmp_path / "own.yaml")
    assert (code, told in notes) == (0, True), notes
    assert told or [each for each in EVERY if each in notes] == []


def test_a_command_that_kureds_chart_obeys_is_not_warned_about(tmp_path: Path) -> None:
    command = "{configuration: {useRebootSentinelHostPath: false, rebootSentinelCommand: needs-restarting -r}}"
    (tmp_path / "own.yaml").write_text(command)
    assert "rebootSentinelCommand" not in installed(tmp_path, tmp_path / "own.yaml")[1]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "Local", "America/Argentina/Ushuaia", "Etc/GMT+3"])
@pytest.mark.parametrize("times", list(itertools.product(["0:00", "23:59:59", "12am", "9:5", "10:30PM"], ["23"])))
def test_the_schema_takes_every_time_and_zone_that_the_agent_takes(
    tmp_path: Path, zone: str, times: tuple[str, str]
) -> None:
    start, end = times
    (tmp_path / "own.yaml").write_text(f"configuration: {{timeZone: {zone}, startTime: '{start}', endTime: '{end}'}}")
    assert installed(tmp_path, tmp_path / "own.yaml")[0] == 0
