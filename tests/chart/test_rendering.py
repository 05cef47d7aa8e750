"""Tests the rendered chart: by default it equals kustomize's objects, each values file has a golden file, and each
setting reaches the agent.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.settings.sources import resolve
from docs.chart import objects
from tests.architecture.source_tree import ROOT
from tests.chart.given import GIVEN, NAMES, parsed
from tests.chart.goldens import FILES, difference, golden
from tests.chart.helm import (
    CHART,
    Objects,
    agent_of,
    by_name,
    flags_of,
    helm,
    lines_of,
    rendered,
    template,
    the,
    without_helms_labels,
)
from tests.patience import run

pytestmark = pytest.mark.cluster


def kustomized(tmp_path: Path, component: str = "", more: str = "") -> Objects:
    shutil.copytree(objects.MANIFESTS, tmp_path / "manifests")
    (tmp_path / "own").mkdir()
    components = f"components: [../manifests/{component}]\n" if component else ""
    (tmp_path / "own" / "kustomization.yaml").write_text(f"resources: [../manifests]\n{components}{more}")
    done = run(["kubectl", "kustomize", str(tmp_path / "own")])
    assert done.returncode == 0, done.stderr
    return by_name(done.stdout)


@pytest.mark.parametrize("component", ["", *objects.components()])
def test_the_chart_and_kustomize_differ_only_in_helms_labels(tmp_path: Path, component: str) -> None:
    values = {"components": {component: True}} if component else {}
    wanted = kustomized(tmp_path, component)
    assert without_helms_labels(rendered(tmp_path, values={**values, "namespace": {"create": True}})) == wanted
    without = {name: each for name, each in wanted.items() if name[0] != "Namespace"}
    assert without_helms_labels(rendered(tmp_path, values=values)) == without, "helm itself creates the namespace"


def test_the_chart_and_kustomize_render_the_same_objects_for_a_custom_name_and_namespace(tmp_path: Path) -> None:
    """kustomize gets the name prefix `our-`, and helm gets the release name `our`. Both get the namespace `reboots`."""
    wanted = kustomized(tmp_path, "admission", "namespace: reboots\nnamePrefix: our-\n")
    values = {"components": {"admission": True}, "namespace": {"create": True}}
    found = without_helms_labels(rendered(tmp_path, values=values, release="our", namespace="reboots"))
    # Fields without a rule in kustomize, which the README tells the reader to set by hand.
    agent, theirs = the("DaemonSet", found), the("DaemonSet", wanted)
    for each in (agent_of(found), agent_of(wanted)):
        each["args"] = [word for word in each["args"] if not word.startswith(("--ds-name=", "--config-map="))]
        each["env"] = [row for row in each["env"] if row["name"] != "CAREEN_NOTIFY_URL"]
    agent["spec"]["selector"] = theirs["spec"]["selector"]
    agent["spec"]["template"]["metadata"] = theirs["spec"]["template"]["metadata"]
    for (kind, _), each in wanted.items():
        if kind.startswith("ValidatingAdmission"):
            del each["metadata"]["namespace"]  # which these objects cannot have, and the API server ignores
    assert found == wanted


def test_the_name_of_each_object_contains_the_release_name(tmp_path: Path) -> None:
    found = rendered(
        tmp_path,
        values={
            "fullnameOverride": "rb",
            "serviceAccount": {"name": "acc"},
            "components": {"network": True, "alerts": True, "dashboard": True, "admission": True},
            "configuration": {"notifyUrl": "discord://t@1"},
        },
        release="x",
        namespace="y",
    )
    agent = the("DaemonSet", found)
    labels = {"name": "rb"}
    assert agent["spec"]["selector"]["matchLabels"] == labels
    assert labels.items() <= agent["spec"]["template"]["metadata"]["labels"].items()
    assert the("NetworkPolicy", found)["spec"]["podSelector"]["matchLabels"] == labels
    assert the("PodMonitor", found)["spec"]["selector"]["matchLabels"] == labels
    assert (
        agent["spec"]["template"]["spec"]["serviceAccountName"]
        == the("ServiceAccount", found)["metadata"]["name"]
        == "acc"
    )
    assert {"--ds-name=rb", "--config-map=rb"} <= set(agent_of(found)["args"])
    assert the("Role", found)["rules"][0]["resourceNames"] == ["rb"]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = the(kind, found)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "acc", "namespace": "y"}]
        assert binding["roleRef"]["name"] == "rb"
    assert the("Secret", found)["metadata"]["name"] == "rb"
    assert {each["metadata"]["namespace"] for each in found.values() if "namespace" in each["metadata"]} == {"y"}


@pytest.mark.parametrize("has_service_monitor", [False, True])
def test_a_service_monitor_replaces_only_the_pod_monitor_of_the_agents(
    tmp_path: Path, has_service_monitor: bool
) -> None:
    components = {"alerts": True, "shadow": True, "shadow-monitoring": True}
    found = rendered(
        tmp_path, values={"components": components, "metrics": {"create": has_service_monitor}}, release="careen"
    )
    selected = [
        each["spec"]["selector"]["matchLabels"]["name"] for each in found.values() if each["kind"] == "PodMonitor"
    ]
    assert sorted(selected) == (["careen-shadow"] if has_service_monitor else ["careen", "careen-shadow"])
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in found.values() if each["kind"] == "Deployment"]
    assert [each["name"] for each in pods] == ["careen-shadow"]


@pytest.mark.parametrize("values", FILES, ids=lambda path: path.stem)
def test_each_values_file_renders_its_golden_file(tmp_path: Path, values: Path) -> None:
    assert difference(tmp_path, values) == golden(values).read_text(), (
        "review the difference, then run `make chart-goldens`"
    )


@pytest.mark.parametrize("values", FILES, ids=lambda path: path.stem)
def test_the_agent_accepts_the_settings_of_each_values_file(tmp_path: Path, values: Path) -> None:
    settled(rendered(tmp_path, values=yaml.safe_load(values.read_text())))


def test_helm_lint_reports_no_problem(tmp_path: Path) -> None:
    for values in FILES:
        done = helm(tmp_path, "lint", "--strict", str(CHART), "--values", str(values))
        assert done.returncode == 0, done.stdout
        assert "[WARNING]" not in done.stdout


def test_helm_package_packs_the_chart(tmp_path: Path) -> None:
    done = helm(tmp_path, "package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (packed,) = tmp_path.glob("careen-*.tgz")
    done = helm(tmp_path, "template", "careen", str(packed), "--namespace", "careen")
    assert by_name(done.stdout) == rendered(tmp_path)


def settled(found: Objects) -> Any:
    """Return the settings that the agent would resolve from the rendered flags, variables and ConfigMap."""
    environment = {row["name"]: row["value"] for row in agent_of(found)["env"] if "value" in row}
    for kind, name in found:
        if kind == "Secret":
            environment |= {
                f"CAREEN_{at.upper().replace('-', '_')}": text for at, text in found[kind, name]["stringData"].items()
            }
    flags = {"node_id": ["n1"], **flags_of(found)}
    return resolve(flags=flags, environment=environment, config_map=lines_of(found), config_map_name="careen")


def test_every_setting_in_the_values_reaches_the_agent_unchanged(tmp_path: Path) -> None:
    resolved = settled(rendered(tmp_path, values={"configuration": GIVEN, "tolerateAllTaints": True}))
    wrong = {}
    for chart_key, name in NAMES.items():
        if getattr(resolved.settings, name) != parsed(chart_key):
            wrong[chart_key] = getattr(resolved.settings, name)
        if resolved.origins[name].where == "default":
            wrong[chart_key] = "never arrived"
    assert wrong == {}


def test_a_value_equal_to_the_default_is_rendered(tmp_path: Path) -> None:
    """The chart must not leave the value out, because an image of another version may have another default."""
    found = rendered(
        tmp_path, values={"configuration": {"rebootMethod": "command", "drainTimeout": 0, "logLevel": "info"}}
    )
    assert lines_of(found) == {"drain-timeout": "0", "reboot-method": "command"}
    assert "--log-level=info" in set(agent_of(found)["args"])


def test_an_unquoted_off_in_extra_args_reaches_the_agent_as_off_and_not_as_false(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "extraArgs: {forecast: off, force-reboot: off}\nresources: {limits: {memory: 200Mi}}\n"
    )
    found = rendered(tmp_path, "--values", str(tmp_path / "own.yaml"))
    assert {"--forecast=off", "--force-reboot=false"} <= set(agent_of(found)["args"])
    assert settled(found).settings.forecast == "off"


def test_a_variable_in_the_values_replaces_the_charts_variable(tmp_path: Path) -> None:
    secret = {"secretKeyRef": {"name": "mine", "key": "url"}}
    names = ("CAREEN_NOTIFY_URL", "CAREEN_SLACK_HOOK_URL")
    values = {"existingSecret": "both", "extraEnvVars": [{"name": name, "valueFrom": secret} for name in names]}
    env = agent_of(rendered(tmp_path, values=values))["env"]
    assert [(row["name"], row["valueFrom"]) for row in env if row["name"] in names] == [
        (name, secret) for name in names
    ]
    assert len({row["name"] for row in env}) == len(env), (
        "a strategic merge would drop one of two variables with the same name"
    )


def test_the_chart_renders_secret_values_only_into_a_secret(tmp_path: Path) -> None:
    values = {
        "configuration": {
            "notifyUrl": "discord://hidden@1",
            "slackHookUrl": "https://hooks.slack.com/services/T0/B0/hidden",
        }
    }
    found = rendered(tmp_path, values=values)
    assert {kind for (kind, _), each in found.items() if "hidden" in str(each)} == {"Secret"}
    first = the("DaemonSet", found)["spec"]["template"]["metadata"]["annotations"]
    values["configuration"]["notifyUrl"] = "discord://hidden@2"
    again = the("DaemonSet", rendered(tmp_path, values=values))["spec"]["template"]["metadata"]["annotations"]
    assert first != again, "a changed secret must replace the pods, because their environment contains it"


def test_a_secret_with_message_urls_is_mounted_beside_other_files_and_volumes(tmp_path: Path) -> None:
    own = {"name": "own", "secret": {"secretName": "own"}}
    values = {
        "notifyUrlSecret": "messages",
        "volumes": [own],
        "volumeMounts": [{"name": "own", "mountPath": "/own"}],
        "configuration": {"notifyUrlFile": ["/own/urls"]},
    }
    found = rendered(tmp_path, values=values)
    pod, container = the("DaemonSet", found)["spec"]["template"]["spec"], agent_of(found)
    volume = {"name": "careen-notify-urls", "secret": {"secretName": "messages", "optional": True}}
    assert (own in pod["volumes"], volume in pod["volumes"]) == (True, True)
    (place,) = (each for each in container["volumeMounts"] if each["name"] == "careen-notify-urls")
    assert place["readOnly"]
    assert settled(found).settings.notify_url_file == ("/own/urls", place["mountPath"])


def test_careen_shadow_has_its_own_service_account_even_if_the_chart_creates_none_for_agents(tmp_path: Path) -> None:
    values = {
        "serviceAccount": {"create": False, "name": "theirs", "extraAnnotations": {"role": "agents"}},
        "components": {"shadow": True},
    }
    found = rendered(tmp_path, values=values)
    account = the("ServiceAccount", found)
    assert account["metadata"]["name"] == the("Deployment", found)["spec"]["template"]["spec"]["serviceAccountName"]
    assert "annotations" not in account["metadata"]
    found = rendered(tmp_path, values={**values, "serviceAccount": {"extraAnnotations": {"role": "agents"}}})
    annotated = {
        name: each["metadata"].get("annotations") for (kind, name), each in found.items() if kind == "ServiceAccount"
    }
    assert annotated == {"careen": {"role": "agents"}, "careen-shadow": None}


def test_changing_a_setting_in_the_config_map_restarts_no_pod(tmp_path: Path) -> None:
    changed = rendered(tmp_path, values={"configuration": {"concurrency": 2, "rebootDays": ["su"]}})
    assert the("DaemonSet", changed) == the("DaemonSet", rendered(tmp_path))
    assert the("ConfigMap", changed) != the("ConfigMap", rendered(tmp_path))


# ---- defects of kured's chart (its release 6.1.0) ----


def test_a_flag_with_the_value_false_is_rendered(tmp_path: Path) -> None:
    found = rendered(
        tmp_path, values={"extraArgs": {"force-reboot": False, "lock-ttl": 0, "message-template-drain": ""}}
    )
    assert {"--force-reboot=false", "--lock-ttl=0", "--message-template-drain="} <= set(agent_of(found)["args"])


def test_a_setting_with_the_value_zero_is_rendered(tmp_path: Path) -> None:
    for zero in (0, "0"):
        found = rendered(tmp_path, values={"configuration": {"drainGracePeriod": zero}})
        assert lines_of(found) == {"drain-grace-period": "0"}


@pytest.mark.parametrize("mounted", [True, False, None])
def test_a_sentinel_command_is_rendered_whether_or_not_the_sentinels_folder_is_mounted(
    tmp_path: Path, mounted: bool | None
) -> None:
    found = rendered(
        tmp_path, values={"configuration": {"rebootSentinelCommand": "true", "useRebootSentinelHostPath": mounted}}
    )
    assert "--reboot-sentinel-command=true" in agent_of(found)["args"]


def test_a_toleration_in_the_values_is_added_to_the_default_tolerations(tmp_path: Path) -> None:
    own = {"key": "a", "operator": "Exists"}
    found = rendered(tmp_path, values={"tolerations": [own]})
    assert the("DaemonSet", found)["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}, own]


def test_the_notes_warn_about_the_placeholder_image_only_if_it_is_used(tmp_path: Path) -> None:
    def notes(*words: str) -> str:
        done = helm(tmp_path, "install", "careen", str(CHART), "--namespace", "careen", "--dry-run=client", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("NOTES:")[2]

    assert "NO POD WILL START" in notes()
    own = notes("--set", "image.repository=registry.example/careen,configuration.rebootCommand=/sbin/kexec")
    assert "NO POD" not in own
    assert "components.privileged=true" in own


# ---- examples of the documentation ----


def test_the_helm_command_of_the_readme_installs_the_image_that_the_readme_pushes(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text().split("## Install")[1].split("## ")[0]
    namespace, install, status = section.split("```console\n")[2].split("```")[0].splitlines()
    assert namespace == "kubectl apply -f manifests/namespace.yaml"
    assert install.startswith("helm install careen manifests/chart --namespace careen ")
    assert status == "kubectl -n careen rollout status daemonset/careen"
    done = helm(tmp_path, "template", *install.replace("manifests/chart", str(CHART)).split()[2:])
    assert done.returncode == 0, done.stderr
    assert agent_of(by_name(done.stdout))["image"].startswith("registry.example/careen:")


def test_the_chart_accepts_the_values_shown_in_gitops_md(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "gitops.md").read_text()
    shown = [yaml.safe_load(each)["spec"] for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    values = [spec.get("values") or spec["source"]["helm"]["valuesObject"] for spec in shown]
    assert len(values) == 2
    for each in values:
        settled(rendered(tmp_path, values=each))


def test_the_schema_accepts_global_values_that_platforms_add(tmp_path: Path) -> None:
    assert template(tmp_path, "--set", "global.anything=1").returncode == 0
