"""Tests without helm that the Helm chart agrees with the settings and with kustomize's manifests. The tests in
tests/chart render the chart with helm.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import DEFAULTS, SETTINGS
from docs import chart
from docs.chart import objects
from docs.chart.settings import empty_is_a_value, key, place
from tests.architecture.source_tree import ROOT
from tests.patience import run

CHART = ROOT / "manifests" / "chart"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
OF_SETTINGS = {
    name: SCHEMA["properties"]["configuration"]["properties"][key(name)] for name in SETTINGS if place(name) != "chart"
}


@pytest.mark.parametrize("name", chart.PAGES)
def test_each_generated_file_of_the_chart_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == chart.PAGES[name](), "run `make docs`"


def test_the_chart_has_the_version_of_careen() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (version, version)
    base = objects.parts()["agents"]["default"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert base == f"{VALUES['image']['repository']}:{version}"


# ---- the names of kured's chart, 6.1.0 ----

KUREDS = [
    "image.repository",
    "image.tag",
    "image.pullPolicy",
    "image.pullSecrets",
    "revisionHistoryLimit",
    "updateStrategy",
    "maxUnavailable",
    "podAnnotations",
    "dsAnnotations",
    "extraArgs",
    "extraEnvVars",
    "configuration",
    "rbac.create",
    "serviceAccount.create",
    "serviceAccount.name",
    "serviceAccount.extraAnnotations",
    "podSecurityPolicy.create",
    "containerSecurityContext",
    "resources",
    "hostNetwork",
    "metrics.create",
    "metrics.namespace",
    "metrics.labels",
    "metrics.interval",
    "metrics.scrapeTimeout",
    "service.create",
    "service.port",
    "service.annotations",
    "service.name",
    "service.type",
    "livenessProbe",
    "readinessProbe",
    "podLabels",
    "priorityClassName",
    "tolerations",
    "affinity",
    "nodeSelector",
    "volumeMounts",
    "volumes",
    "initContainers",
    "nameOverride",
    "fullnameOverride",
]


@pytest.mark.parametrize("name", KUREDS)
def test_the_chart_accepts_every_value_of_kureds_chart(name: str) -> None:
    found: Any = VALUES
    for part in name.split("."):
        assert part in found
        found = found[part]


def test_each_flag_of_kured_is_a_value_of_the_chart() -> None:
    kureds = {key(name) for name, setting in SETTINGS.items() if setting.is_kureds and place(name) != "chart"}
    kureds.add("useRebootSentinelHostPath")
    assert len(kureds) == 41
    assert kureds <= VALUES["configuration"].keys()


def test_each_setting_is_a_value_of_the_chart_unless_the_chart_computes_the_setting() -> None:
    assert VALUES["configuration"].keys() == {key(name) for name in OF_SETTINGS} | {"useRebootSentinelHostPath"}


def test_the_chart_has_a_value_to_enable_each_component() -> None:
    assert sorted(VALUES["components"]) == objects.components()
    assert not any(VALUES["components"].values())


# ---- the schema accepts what the agent accepts, and no more if a pattern can express it ----


def accepts(form: dict[str, Any], value: Any) -> bool:
    """Return whether the schema accepts the value. Supports only the parts of JSON Schema that the chart uses."""
    return all(_RULES[name](rule, value, form) for name, rule in form.items() if name in _RULES)


def is_a(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    kinds: dict[str, Any] = {
        "string": str, "integer": int, "number": int | float, "array": list, "object": dict, "null": type(None),
    }  # fmt: skip
    return kind in kinds and isinstance(value, kinds[kind])


def of_the_properties(rule: dict[str, Any], value: Any, form: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    others = form.get("additionalProperties", True)
    return all(accepts(rule[name], each) if name in rule else others is not False for name, each in value.items())


_RULES: dict[str, Callable[[Any, Any, dict[str, Any]], bool]] = {
    "type": lambda rule, value, _: any(is_a(each, value) for each in ([rule] if isinstance(rule, str) else rule)),
    "const": lambda rule, value, _: type(rule) is type(value) and rule == value,
    "enum": lambda rule, value, _: value in rule,
    "pattern": lambda rule, value, _: not isinstance(value, str) or re.search(rule, value) is not None,
    "minimum": lambda rule, value, _: not is_a("number", value) or value >= rule,
    "maximum": lambda rule, value, _: not is_a("number", value) or value <= rule,
    "anyOf": lambda rule, value, _: any(accepts(each, value) for each in rule),
    "not": lambda rule, value, _: not accepts(rule, value),
    "items": lambda rule, value, _: not isinstance(value, list) or all(accepts(rule, each) for each in value),
    "properties": of_the_properties,
}

SAMPLES = [
    "boot-id",
    "0",
    "1",
    "-1",
    "7",
    "39",
    "64",
    "65",
    "100",
    "101",
    "8080",
    "65535",
    "65536",
    "99999999",
    "true",
    "false",
    "True",
    "f",
    "yes",
    "5m",
    "90s",
    "1h30m",
    "1.5h",
    ".5s",
    "5.m",
    "0s",
    "0.0m",
    "00h",
    "5",
    "5 m",
    "m",
    "-5m",
    "1d",
    "512Mi",
    "1Gi",
    "64Mi",
    "1.5Gi",
    "22:00",
    "22:00:15",
    "22",
    "10pm",
    "10:30PM",
    "24:00",
    "25",
    "9:61",
    "mo",
    "Tue",
    "SATURDAY",
    "tues",
    "UTC",
    "Europe/Berlin",
    "command",
    "signal",
    "halt",
    "continue",
    "refuse",
    "off",
    "warn",
    "oldest",
    "zone",
    "undo",
    "reboot",
    "text",
    "json",
    "info",
    "zone=1",
    "zone=0",
    "zone",
    "control-plane=2",
    "selector:app=db=1",
    "selector:=1",
    "a=b",
    "a=",
    "a",
    "example.com/name",
    "example.com/name=x",
    "-a",
    "a b",
    "http://prometheus:9090",
    "https://u:p@h/x",
    "ftp://x",
    "http://",
    "Node %s",
    "100%",
    "%s and %s",
    "%% of %s",
    "/var/run/x",
    "sh -c 'x'",
    "^Watch.*$",
    "[",
    "app in (a,b)",
    "!",
    "nsenter",
    "direct",
    "kernel",
    "oldest-first",
    '{"name": "x", "query": "up", "holds": "== 1"}',
    '{"name": "x", "pods": "app=db", "scope": "cluster"}',
    '{"name": "x", "start": "22:00", "end": "04:00"}',
    'node="$NODE"',
]

# No pattern can express expressions, selectors, zones and numbers as texts. The agent checks them when it starts.
SAID_BY_THE_AGENT = {
    "REGEXP", "SELECTOR", "ZONE", "GROUP=N", "TIME", "NUMBER", "MEMORY", "URL", "KEY=VALUE,…", "TEXT", "PATH", "YAML",
    "MATCHERS", "HEADER",
}  # fmt: skip


def is_taken(name: str, text: str) -> bool:
    """Return whether the agent can parse the text as this setting. Does not compare the setting with other settings."""
    kind = SETTINGS[name].kind
    try:
        values = [kind.parse(part) for part in kind.split(text)] if kind.many else [kind.parse(text)]
    except ValueError:
        return False
    return bool(values)


@pytest.mark.parametrize("name", OF_SETTINGS)
def test_the_schema_of_the_chart_accepts_every_text_that_the_agent_accepts(name: str) -> None:
    taken = [text for text in SAMPLES if is_taken(name, text)]
    assert taken or SETTINGS[name].kind.is_secret
    assert [text for text in taken if not accepts(OF_SETTINGS[name], text)] == []


@pytest.mark.parametrize("name", [each for each in OF_SETTINGS if SETTINGS[each].kind.metavar not in SAID_BY_THE_AGENT])
def test_the_schema_of_the_chart_refuses_every_text_that_the_agent_refuses(name: str) -> None:
    many = SETTINGS[name].kind.many
    refused = [text for text in SAMPLES if not is_taken(name, text)]
    assert refused
    assert [text for text in refused if accepts(OF_SETTINGS[name], [text] if many else text)] == []


@pytest.mark.parametrize("name", OF_SETTINGS)
def test_schema_and_agent_accept_the_default_of_each_value_of_the_chart(name: str) -> None:
    value = VALUES["configuration"][key(name)]
    assert accepts(OF_SETTINGS[name], value)
    kind = SETTINGS[name].kind
    if value is None or kind.is_secret:
        return
    texts = (
        [str(each) for each in value]
        if isinstance(value, list)
        else [str(value).lower() if value in (True, False) else str(value)]
    )
    parsed = tuple(kind.parse(each) for each in texts) if kind.many else kind.parse(texts[0])
    assert parsed == DEFAULTS[name]


def test_the_default_values_of_the_chart_pass_its_schema() -> None:
    assert accepts(SCHEMA, VALUES)


@pytest.mark.parametrize("name", [each for each in OF_SETTINGS if empty_is_a_value(each)])
def test_the_schema_of_the_chart_accepts_an_empty_text_where_the_agent_does(name: str) -> None:
    try:
        resolve(flags={"node_id": ["n1"], name: [""]}, environment={})
    except BadSettings as refused:
        # Two settings that depend on other settings.
        assert name == "boot_id_file", refused.problems  # noqa: PT017 - which one it is, is the point


# ---- the objects are those of kustomize ----


def built(folder: Path) -> dict[tuple[str, str], Any]:
    done = run(["kubectl", "kustomize", str(folder)])
    assert done.returncode == 0, done.stderr
    return by_name([each for each in yaml.safe_load_all(done.stdout) if each])


def by_name(found: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
@pytest.mark.parametrize("component", ["", *objects.components()])
def test_the_chart_renders_the_objects_that_kustomize_builds(tmp_path: Path, component: str) -> None:
    shutil.copytree(objects.MANIFESTS, tmp_path / "manifests")
    own = tmp_path / "own"
    own.mkdir()
    more = f"components: [../manifests/{component}]\n" if component else ""
    (own / "kustomization.yaml").write_text(f"resources: [../manifests]\n{more}")
    parts = objects.parts()
    agent = parts["agents"].get(component, parts["agents"]["default"])
    if component in parts["annotations"]:
        agent["metadata"]["annotations"] = parts["annotations"][component]
    assert by_name([*parts["base"], agent, *parts["components"].get(component, [])]) == built(own)
