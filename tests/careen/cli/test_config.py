from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from careen.cli import cli
from careen.settings.tree import SETTINGS, flag
from tests.architecture.source_tree import ROOT
from tests.careen.cli.conftest import Desk


def a_config_map(text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "careen", "namespace": "careen"},
        "data": {"config.yaml": text},
    }


def config_here(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, ["config", "--here", *arguments], env={"KUBECONFIG": "", **environment})


def row(output: str, setting: str) -> list[str]:
    """Return the value and the source of one setting from the table that `careen config` prints."""
    (line,) = (line for line in output.splitlines() if line.startswith(f"{setting} "))
    return re.split(r" {2,}", line.strip())[1:]


def test_config_shows_every_setting_with_its_value_and_source(desk: Desk) -> None:
    desk.lock()
    value = desk.json("config")
    assert list(value["settings"]) == [flag(name) for name in SETTINGS]
    assert value["settings"]["concurrency"] == {"value": "1", "source": "default", "where": "default"}


def test_flags_of_the_daemonset_override_the_configmap(desk: Desk) -> None:
    desk.lock(flags=["--concurrency=3"])
    desk.server.seed(a_config_map("concurrency: 2\ndrain-timeout: 10m\n"))
    output = desk.ok("config")
    assert row(output, "concurrency") == ["3", "--concurrency"]
    assert row(output, "drain-timeout") == ["10m", "`drain-timeout` in ConfigMap careen/careen"]
    assert (
        "the flags and the environment are those of DaemonSet careen/careen; the ConfigMap is careen/careen" in output
    )


def test_config_reads_the_environment_variables_of_the_daemonset_except_the_node_name(desk: Desk) -> None:
    daemonset = yaml.safe_load((ROOT / "manifests" / "daemonset.yaml").read_text())
    daemonset["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "KURED_PERIOD", "value": "5m"})
    desk.server.seed(daemonset)
    output = desk.ok("config")
    assert row(output, "node-id") == ["each-nodes-own", "CAREEN_NODE_ID"]
    assert row(output, "period") == ["5m", "KURED_PERIOD"]
    assert row(output, "host-root") == ["/proc/1/root", "--host-root"]


def test_config_shows_no_secret_from_any_source(desk: Desk) -> None:
    desk.lock(flags=["--notify-url=slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR"])
    desk.server.seed(
        a_config_map(
            "slack-hook-url: https://hooks.slack.com/services/T/B/SECRETWORD\nprometheus-url: "
            "http://name:SECRETWORD@prometheus:9090\n"
        )
    )
    for output in (desk.ok("config"), desk.ok("config", "--output", "json")):
        assert "SECRET" not in output
        assert "slack (set)" in output
        assert "http://prometheus:9090" in output


def test_config_says_that_it_does_not_read_an_environment_variable_from_a_secret(desk: Desk) -> None:
    desk.server.seed(yaml.safe_load((ROOT / "manifests" / "daemonset.yaml").read_text()))
    assert "the value of CAREEN_NOTIFY_URL may come from a Secret, which this command does not read" in desk.ok(
        "config"
    )


def test_config_refuses_settings_that_an_agent_would_refuse(desk: Desk) -> None:
    desk.lock(flags=["--concurrency=0"])
    desk.server.seed(a_config_map("drain-timeot: 10m\n"))
    result = desk.run("config")
    assert result.exit_code == 2
    text = " ".join(result.output.split())
    assert "--concurrency='0': expected a whole number of at least 1: with 0, no node would ever reboot" in text
    assert (
        "`drain-timeot` in ConfigMap careen/careen is not a setting (did you mean drain-timeout?); correct or remove it"
        in text
    )


def test_config_reports_a_missing_daemonset(desk: Desk) -> None:
    result = desk.run("config")
    assert result.exit_code == 1
    assert "the cluster's settings cannot be read" in result.output
    assert "with --here the command reads no cluster" in result.output


def test_config_reports_a_daemonset_that_does_not_run_careen(desk: Desk) -> None:
    desk.server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "careen", "namespace": "careen"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i", "args": ["sleep"]}]},
                },
            },
        }
    )
    result = desk.run("config")
    assert result.exit_code == 1
    assert "DaemonSet careen/careen has no container that runs `careen agent`" in result.output


def test_config_with_the_here_flag_sends_no_request() -> None:
    result = config_here(CAREEN_NODE_ID="n1", KURED_CONCURRENCY="2")
    assert result.exit_code == 0, result.output
    assert row(result.output, "concurrency") == ["2", "KURED_CONCURRENCY"]
    assert row(result.output, "node-id") == ["n1", "CAREEN_NODE_ID"]
    assert "this command did not read a cluster, so it knows no ConfigMap" in result.output


def test_config_reports_a_flag_that_overrides_an_environment_variable() -> None:
    result = config_here("--concurrency=3", KURED_CONCURRENCY="2")
    assert row(result.output, "concurrency") == ["3", "--concurrency"]
    assert "the flag is used (kured would use the variable)" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "environment", "complaint"),
    [
        (["--period=soon"], {}, "--period='soon': expected a duration such as 90s, 5m or 1h30m"),
        (
            [],
            {"CAREEN_PEROID": "1h"},
            "the environment variable CAREEN_PEROID is not a setting (did you mean CAREEN_PERIOD?)",
        ),
        (["--alert-firing-only"], {}, "need --prometheus-url"),
    ],
    ids=["an invalid duration", "a misspelled environment variable", "a flag that requires another flag"],
)
def test_config_exits_with_2_if_settings_are_invalid(
    arguments: list[str], environment: dict[str, str], complaint: str
) -> None:
    result = config_here(*arguments, **environment)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())
