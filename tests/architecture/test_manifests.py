"""Tests that `kubectl apply -k manifests` installs what the code needs: rights, names and settings."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.cli.scheduler import scheduler
from careen.cli.serve import serve
from careen.cli.shadow import shadow
from careen.cli.support import lock_place
from careen.cluster import evictions
from careen.cluster.access import Right, needed_rights
from careen.core.facts import keys
from careen.core.node.autoscalers import PROTECTION
from careen.host import inhibitors
from careen.scheduler.settings import process_settings
from careen.settings import kinds
from careen.settings.config_map_limits import POWERS, Power
from careen.settings.sources import Source, resolve
from careen.settings.tree import DEFAULTS, SETTINGS, Settings, flag
from scheduler_core.config.configuration import Configuration
from tests.architecture.source_tree import ROOT, modules
from tests.patience import run

MANIFESTS = ROOT / "manifests"


def objects_of(file: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((MANIFESTS / file).read_text()) if each]


def the(kind: str, file: str) -> dict[str, Any]:
    (found,) = (each for each in objects_of(file) if each["kind"] == kind)
    return found


AGENT = the("DaemonSet", "daemonset.yaml")
POD = AGENT["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]

# verb, group, resource with subresource, namespace ("" for everywhere), name ("" for any)
Grant = tuple[str, str, str, str, str]

# The rights that access.py itself needs to review the others.
ASKING = {
    ("create", "authorization.k8s.io", review, "", "")
    for review in ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
}


def granted(role: dict[str, Any]) -> Iterator[Grant]:
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for verb, group, resource, name in product(
            rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""])
        ):
            yield verb, group, resource, namespace, name


def needed(right: Right) -> Grant:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    # RBAC cannot express "the agent's own Node", so a right on that Node is granted for every Node.
    everywhere = right.resource in {"nodes", "events"}
    return right.verb, right.group, resource, "" if everywhere else right.namespace, "" if everywhere else right.name


def rights() -> tuple[Right, ...]:
    own = AGENT["metadata"]
    return needed_rights(
        node="any", namespace=own["namespace"], daemonset=own["name"], config_map="careen", forecast=True, sleeps=True
    )


def test_the_roles_grant_exactly_the_rights_that_the_agent_needs() -> None:
    given = set(granted(the("ClusterRole", "rbac.yaml"))) | set(granted(the("Role", "rbac.yaml")))
    assert given == {needed(right) for right in rights()} | ASKING


def test_no_role_grants_a_wildcard() -> None:
    assert [
        grant for role in ("ClusterRole", "Role") for grant in granted(the(role, "rbac.yaml")) if "*" in "".join(grant)
    ] == []


def test_a_comment_explains_each_rbac_rule() -> None:
    text = (MANIFESTS / "rbac.yaml").read_text()
    rules = re.findall(r"^(.*)\n  - apiGroups: .*\n    resources: (.*)$", text, re.MULTILINE)
    assert rules
    # A rule that directly follows another rule shares the comment of that rule.
    assert [resources for before, resources in rules if not before.startswith(("  #", "    verbs"))] == []


def test_each_path_that_the_code_requests_is_covered_by_a_right() -> None:
    """A new request in careen's folder cluster/ needs a row in cluster/access.py, or this test fails."""
    covered = (
        {("", "namespaces")} | {(right.group, right.resource) for right in rights()} | {each[1:3] for each in ASKING}
    )
    path = re.compile(r"^/api(?:s/(?P<group>[^/]+))?/(?:v\d\w*|_|\{\w+\})/(?:namespaces/[^/]*/)?(?P<resource>[a-z]+)")
    asked = set()
    for module in modules("careen"):
        if module.name.startswith("careen.cluster."):
            asked |= {
                (match["group"] or "", match["resource"]) for text in module.strings() if (match := path.match(text))
            }
    assert ("", "nodes") in asked
    assert asked - covered == set()


def test_the_role_bindings_refer_to_the_service_account_of_the_daemonset() -> None:
    account = {"kind": "ServiceAccount", "name": POD["serviceAccountName"], "namespace": AGENT["metadata"]["namespace"]}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = the(kind, "rbac.yaml")
        assert binding["subjects"] == [account]
        assert binding["roleRef"]["kind"] == kind.removesuffix("Binding")
    assert the("ServiceAccount", "rbac.yaml")["metadata"] == {
        "name": account["name"],
        "namespace": account["namespace"],
    }


def test_the_agent_runs_on_every_linux_node_regardless_of_taints() -> None:
    assert POD["tolerations"] == [{"operator": "Exists"}]
    assert POD["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert "affinity" not in POD


def test_the_selector_of_the_daemonset_matches_its_pods() -> None:
    wanted = AGENT["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= AGENT["spec"]["template"]["metadata"]["labels"].items()


def test_the_pod_security_level_of_the_namespace_admits_the_agents_pod() -> None:
    namespace = the("Namespace", "namespace.yaml")["metadata"]
    assert namespace["name"] == AGENT["metadata"]["namespace"]
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def settings_text() -> str:
    text: str = the("ConfigMap", "settings.yaml")["data"]["config.yaml"]
    return text


def test_the_settings_file_lists_every_setting() -> None:
    named = set(re.findall(r"^#([a-z-]+): ", settings_text(), re.MULTILINE))
    assert named == {flag(name) for name, setting in SETTINGS.items() if not setting.bootstrap}


def test_the_installed_settings_file_changes_no_default() -> None:
    assert yaml.safe_load(settings_text()) is None


def test_the_settings_file_shows_the_flag_for_each_setting_that_gives_root_rights() -> None:
    blocks = re.findall(r"^((?:# .*\n)+)#([a-z-]+): ", settings_text(), re.MULTILINE)
    marked = {name: re.search(r"ROOT: .*--([a-z-]+)\.$", " ".join(text.split("\n# ")).strip()) for text, name in blocks}
    assert {name: match[1] for name, match in marked.items() if match} == {
        flag(name): flag(power) for name, power in POWERS.items()
    }


def test_by_default_the_config_map_can_set_nothing_that_gives_root_rights() -> None:
    given = " ".join([*CONTAINER["args"], *(each["name"] for each in CONTAINER["env"])])
    assert "may" not in given.lower()


def test_every_commented_value_in_the_settings_file_is_the_default() -> None:
    """A person who removes the `#` before such a line changes no setting."""
    written = yaml.safe_load(
        "\n".join(line.removeprefix("#") for line in settings_text().splitlines() if re.match(r"#[a-z-]+: ", line))
    )
    switches = {power.value: ["true"] for power in Power}
    resolved = resolve(
        flags={"node_id": ["n1"], **switches}, environment={}, config_map=written, config_map_name="careen"
    )
    assert resolved.settings == Settings(node_id="n1", **dict.fromkeys(switches, True))
    assert {name for name, given in resolved.origins.items() if given.source is Source.CONFIG_MAP} == {
        name for name, setting in SETTINGS.items() if not setting.bootstrap
    }


def test_the_daemonset_has_the_name_and_namespace_where_the_agent_looks_for_it() -> None:
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in CONTAINER["env"]
        if "fieldRef" in each["valueFrom"]
    }
    assert (fields["CAREEN_DS_NAMESPACE"], fields["POD_NAME"]) == ("metadata.namespace", "metadata.name")
    assert f"--ds-name={AGENT['metadata']['name']}" in CONTAINER["args"]
    settings = the("ConfigMap", "settings.yaml")["metadata"]
    assert (settings["namespace"], settings["name"]) == (AGENT["metadata"]["namespace"], DEFAULTS["config_map"])
    assert (AGENT["metadata"]["namespace"], AGENT["metadata"]["name"]) == lock_place.OURS


def test_the_flags_and_variables_of_the_container_are_existing_settings() -> None:
    flags = {re.match(r"--([a-z-]+)", argument).group(1) for argument in CONTAINER["args"][1:]}  # type: ignore[union-attr]
    assert CONTAINER["args"][0] == "agent"
    assert flags - {flag(name) for name in SETTINGS} == set()
    variables = {each["name"] for each in CONTAINER["env"] if each["name"].startswith(("CAREEN_", "KURED_"))}
    assert variables == {"CAREEN_NODE_ID", "CAREEN_DS_NAMESPACE", "CAREEN_NOTIFY_URL"}


def test_secret_settings_come_from_an_optional_kubernetes_secret() -> None:
    (source,) = [each["valueFrom"]["secretKeyRef"] for each in CONTAINER["env"] if each["name"] == "CAREEN_NOTIFY_URL"]
    assert source == {"name": "careen", "key": "notify-url", "optional": True}
    assert SETTINGS["notify_url"].kind.is_secret


# ---- the agent's access to its host ----


def argument(container: dict[str, Any], name: str) -> str:
    (found,) = (each.partition("=")[2] for each in container["args"] if each.startswith(f"--{name}="))
    return str(found)


def test_the_default_daemonset_mounts_no_host_path() -> None:
    """The reboot method `command` sees the host's files through the namespaces of PID 1, so a mount would only add
    another way to the host.
    """
    assert "volumes" not in POD
    assert "volumeMounts" not in CONTAINER
    assert POD["hostPID"] is True
    assert argument(CONTAINER, "host-root") == "/proc/1/root"
    assert "hostNetwork" not in POD


def test_the_default_daemonset_has_only_the_capabilities_that_nsenter_needs() -> None:
    """Tested on a kubelet: nsenter needs SYS_PTRACE to open `/proc/1/ns/mnt`, and the other two capabilities to enter
    that namespace.
    """
    assert CONTAINER["securityContext"] == {
        "runAsUser": 0,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "Unconfined"},
        "seLinuxOptions": {"type": "spc_t"},
    }


def test_the_metrics_port_of_the_manifest_equals_the_agents_default() -> None:
    assert CONTAINER["ports"] == [{"name": "metrics", "containerPort": DEFAULTS["metrics_port"]}]
    assert {CONTAINER[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {"metrics"}
    # A probe before the end of the first turn would fail, and the pod would wait for a whole period.
    assert 4 <= CONTAINER["readinessProbe"]["initialDelaySeconds"] < CONTAINER["readinessProbe"]["periodSeconds"]


def test_the_memory_limit_has_room_for_a_forecast_beside_the_agent() -> None:
    limit = kinds.memory(CONTAINER["resources"]["limits"]["memory"])
    agent = int(CONTAINER["resources"]["requests"]["memory"].removesuffix("Mi")) * 2**20
    # docs/sizing.md: the child for 5,000 nodes and 150,000 pods
    assert limit >= 291 * 2**20 + 1.5 * agent


def test_every_manifest_is_part_of_the_base_or_of_a_component() -> None:
    applied = set(the("Kustomization", "kustomization.yaml")["resources"])
    assert {path.name for path in MANIFESTS.glob("*.yaml")} == applied | {"kustomization.yaml"}
    assert [
        path.name for path in MANIFESTS.iterdir() if path.is_dir() and not (path / "kustomization.yaml").exists()
    ] == ["chart"]


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_kustomize_builds_the_base() -> None:
    built = kustomize(MANIFESTS)
    assert sorted(each["kind"] for each in built) == [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "DaemonSet",
        "Namespace",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]
    (agent,) = (each for each in built if each["kind"] == "DaemonSet")
    assert agent["spec"]["selector"] == AGENT["spec"]["selector"]
    assert agent["spec"]["template"]["spec"]["containers"][0]["image"] == PLACEHOLDER


# ---- the image: always the reader's own ----

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLACEHOLDER = f"careen.invalid/careen:{VERSION}"


def images_in(value: Any) -> Iterator[str]:
    """Yield each value of a field `image` in a manifest. For each entry of `images` in a kustomization, yield the new
    image: `newName`, or `name` if there is no `newName`, with the tag `newTag`."""
    if isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        for each in value.get("images") or () if value.get("kind") in {"Kustomization", "Component"} else ():
            yield f"{each.get('newName', each['name'])}:{each.get('newTag', '')}"
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from images_in(each)


def test_no_manifest_contains_an_image_that_another_party_could_own() -> None:
    """An image name without a registry belongs to the default registry, where anyone could register the name. The
    container would run that party's code as root on the host.
    """
    named = {
        image
        for file in MANIFESTS.rglob("*.yaml")
        if "templates" not in file.parts
        for each in yaml.safe_load_all(file.read_text())
        for image in images_in(each)
    }
    assert named == {PLACEHOLDER}


def commands_of_the_readme() -> list[str]:
    section = (ROOT / "README.md").read_text().split("## Install")[1].split("## ")[0]
    return section.split("```console\n")[1].split("```")[0].splitlines()


def test_the_commands_of_the_readme_build_push_and_apply_the_same_image() -> None:
    build, push, apply = commands_of_the_readme()
    own = push.removeprefix("docker push ")
    assert own.endswith(f"/careen:{VERSION}")
    assert build == f"make image IMAGE={own}"
    assert apply == f"kubectl kustomize manifests | sed 's#{PLACEHOLDER}#{own}#' | kubectl apply -f -"
    assert f'newName: {own.rpartition(":")[0]}\n    newTag: "{VERSION}"' in (MANIFESTS / "README.md").read_text()


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_commands_of_the_readme_install_the_image_that_they_push() -> None:
    _, push, apply = commands_of_the_readme()
    done = run(["sh", "-c", apply.removesuffix(" | kubectl apply -f -")], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert set(images_in(list(yaml.safe_load_all(done.stdout)))) == {push.removeprefix("docker push ")}


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_signal_component_keeps_only_one_capability(tmp_path: Path) -> None:
    container = with_component(tmp_path, "signal")["containers"][0]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["KILL"]}
    assert "privileged" not in container["securityContext"]
    assert container["args"][-1] == "--reboot-method=signal"


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_signal_component_mounts_three_folders_and_none_can_contain_a_socket(tmp_path: Path) -> None:
    pod = with_component(tmp_path, "signal")
    sources = {each["name"]: each["hostPath"] for each in pod["volumes"]}
    container = pod["containers"][0]
    root = argument(container, "host-root")
    mounted = {
        sources[mount["name"]]["path"]: "write" if not mount.get("readOnly") else mount["recursiveReadOnly"]
        for mount in container["volumeMounts"]
    }
    assert mounted == {
        str(Path(argument(container, "reboot-sentinel")).parent): "IfPossible",
        inhibitors.FOLDERS[0]: "IfPossible",
        argument(container, "host-lock-dir"): "write",
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {f"{root}{path}" for path in mounted}
    # A socket could only be in one of these folders. The sentinel file is not mounted itself, because a runtime
    # would create a folder in place of a missing file.
    assert not {"/run", "/var/run", "/"} & set(mounted)
    assert {each["type"] for each in sources.values()} <= {"Directory", "DirectoryOrCreate"}


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_agents_pod_does_not_start_without_the_sentinel_folder(tmp_path: Path) -> None:
    """If the kubelet created an empty folder instead, the agent would never find a sentinel file, and the node would
    never reboot.
    """
    pod = with_component(tmp_path, "signal")
    (need,) = (each["hostPath"] for each in pod["volumes"] if each["name"] == "need")
    assert need == {"path": "/run/careen/need", "type": "Directory"}


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_privileged_component_makes_the_container_privileged(tmp_path: Path) -> None:
    assert with_component(tmp_path, "privileged")["containers"][0]["securityContext"] == {
        "privileged": True,
        "runAsUser": 0,
        "readOnlyRootFilesystem": True,
    }


def with_component(tmp_path: Path, component: str) -> dict[str, Any]:
    """Add the component to the base manifests, and return the pod spec of the agents' DaemonSet."""
    (agent,) = (each for each in overlay(tmp_path, component) if each["kind"] == "DaemonSet")
    pod: dict[str, Any] = agent["spec"]["template"]["spec"]
    return pod


NEW_FIELDS = ("appArmorProfile", "recursiveReadOnly")
"""These fields exist from Kubernetes 1.30 on."""


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
@pytest.mark.parametrize("component", ["network", "signal"])
def test_the_patch_in_the_readme_removes_every_field_unknown_to_older_api_servers(
    tmp_path: Path, component: str
) -> None:
    readme = (MANIFESTS / "README.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    profile, mounts_of_signal = (each for each in blocks if any(f"{name}: null" in each for name in NEW_FIELDS))
    patch = profile + mounts_of_signal if component == "signal" else profile
    before, after = (
        next(each for each in overlay(tmp_path / name, component, text) if each["kind"] == "DaemonSet")
        for name, text in (("before", ""), ("after", patch))
    )
    assert any(name in str(before) for name in NEW_FIELDS)
    assert not [name for name in NEW_FIELDS if name in str(after)]
    mounts = [
        [each["mountPath"] for each in found["spec"]["template"]["spec"]["containers"][0].get("volumeMounts", ())]
        for found in (before, after)
    ]
    assert sorted(mounts[0]) == sorted(mounts[1])
    privileged = str(with_component(tmp_path / "privileged", "privileged"))
    assert not [name for name in NEW_FIELDS if name in privileged], (
        "the README says that older API servers know every field of manifests/privileged/"
    )


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_readmes_patch_for_prometheus_sets_the_url_and_mounts_the_token_file(tmp_path: Path) -> None:
    readme = (MANIFESTS / "README.md").read_text()
    (example,) = [each for each in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL) if "PROMETHEUS" in each]
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kustomization.yaml").write_text(f"resources: [../manifests]\n{example}")
    (agent,) = (each for each in kustomize(tmp_path / "own") if each["kind"] == "DaemonSet")
    pod = agent["spec"]["template"]["spec"]
    container = pod["containers"][0]
    environment = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    settings = resolve(flags={"node_id": ["n1"]}, environment=environment).settings
    (mount,) = container["volumeMounts"]
    assert [each["name"] for each in pod["volumes"]] == [mount["name"]]
    assert settings.prometheus_url
    assert str(Path(settings.prometheus_token_file).parent) == mount["mountPath"]


# ---- the two units of a host for the signal method ----

UNITS = MANIFESTS / "signal" / "host"


def unit_line(file: str, key: str) -> str:
    (found,) = re.findall(rf"^{key}=(.*)$", (UNITS / file).read_text(), re.MULTILINE)
    return str(found)


def test_the_systemd_units_write_to_the_folder_that_the_signal_component_mounts() -> None:
    component = (MANIFESTS / "signal" / "kustomization.yaml").read_text()
    sentinel = re.search(r"--reboot-sentinel=(\S+)", component)
    assert sentinel is not None
    assert f"/run/{unit_line('careen-need.service', 'RuntimeDirectory')}" == str(Path(sentinel[1]).parent)
    assert f": > {sentinel[1]};" in unit_line("careen-need.service", "ExecStart")
    host = unit_line("careen-need.path", "PathChanged")
    assert Path("/var") / host.lstrip("/") == Path(*DEFAULTS["reboot_sentinel"])
    assert f"[ -e {host} ]" in unit_line("careen-need.service", "ExecStart")
    assert unit_line("careen-need.path", "Unit") == "careen-need.service"
    assert unit_line("careen-need.service", "StartLimitIntervalSec") == "0"


def test_the_systemd_unit_copies_and_removes_the_sentinel_file(tmp_path: Path) -> None:
    quoted = re.fullmatch(r"/bin/sh -c '(.*)'", unit_line("careen-need.service", "ExecStart"))
    assert quoted is not None
    script = quoted[1].replace("$$", "$").replace("/run/", f"{tmp_path}/").replace("sleep", ":")
    (tmp_path / "careen" / "need").mkdir(parents=True)
    theirs, ours = tmp_path / "reboot-required", tmp_path / "careen" / "need" / "reboot-required"
    for wanted in (False, True, True, False, False):
        theirs.touch() if wanted else theirs.unlink(missing_ok=True)
        done = run(["/bin/sh", "-c", script])
        assert (done.returncode, done.stderr, ours.exists()) == (0, "", wanted)
    for packages, expected in ((None, ""), ("linux-image\nlibc6\n", "linux-image\nlibc6\n"), (None, "")):
        theirs.touch()
        lists = [file.with_name("reboot-required.pkgs") for file in (theirs, ours)]
        lists[0].unlink(missing_ok=True) if packages is None else lists[0].write_text(packages)
        assert run(["/bin/sh", "-c", script]).stderr == ""
        assert lists[1].read_text() == expected
    theirs.unlink()
    assert run(["/bin/sh", "-c", script]).returncode == 0
    assert list(ours.parent.iterdir()) == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on the PATH")
@pytest.mark.parametrize("file", ["careen-need.path", "careen-need.service"])
def test_systemd_accepts_the_unit_files(tmp_path: Path, file: str) -> None:
    shutil.copytree(UNITS, tmp_path / "units")
    done = run(["systemd-analyze", "verify", str(tmp_path / "units" / file)])
    assert (done.returncode, done.stderr) == (0, "")


# ---- the network ----


def test_the_network_policy_allows_ingress_only_to_the_metrics_port() -> None:
    policy = the("NetworkPolicy", "network/policy.yaml")
    assert policy["metadata"]["namespace"] == AGENT["metadata"]["namespace"]
    assert policy["spec"] == {
        "podSelector": AGENT["spec"]["selector"],
        "policyTypes": ["Ingress"],  # without "Egress", the policy does not restrict egress
        "ingress": [{"ports": [{"protocol": "TCP", "port": CONTAINER["ports"][0]["name"]}]}],
    }


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
@pytest.mark.parametrize(
    ("component", "kinds"),
    [
        ("admission", {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}),
        ("alerts", {"PodMonitor", "PrometheusRule"}),
        ("network", {"NetworkPolicy"}),
        ("scheduler", {"Deployment", "PodDisruptionBudget"}),
        ("serve", {"Deployment"}),
        ("shadow", {"Deployment"}),
    ],
)
def test_kustomize_builds_each_component_on_top_of_the_base(tmp_path: Path, component: str, kinds: set[str]) -> None:
    base = {each["kind"] for each in kustomize(MANIFESTS)}
    assert {each["kind"] for each in overlay(tmp_path, component)} - base == kinds


POLICIES = [each for each in objects_of("admission/policies.yaml") if each["kind"] == "ValidatingAdmissionPolicy"]
BINDINGS = [
    each for each in objects_of("admission/policies.yaml") if each["kind"] == "ValidatingAdmissionPolicyBinding"
]
(LISTED,) = (each["metadata"] for each in objects_of("admission/parameters.yaml"))


def test_each_admission_policy_is_bound_and_checks_only_careens_account() -> None:
    assert {each["spec"]["policyName"] for each in BINDINGS} == {each["metadata"]["name"] for each in POLICIES}
    own = AGENT["metadata"]
    for each in BINDINGS:
        param = {"name": own["name"], "namespace": own["namespace"], "parameterNotFoundAction": "Allow"}
        assert each["spec"]["paramRef"] == param
        assert each["spec"]["validationActions"] == ["Deny"]
    for each in POLICIES:
        assert each["spec"]["paramKind"] == {"apiVersion": AGENT["apiVersion"], "kind": AGENT["kind"]}
        assert each["spec"]["failurePolicy"] == "Fail"
        (condition,) = each["spec"]["matchConditions"]
        assert condition["expression"] == (
            "request.userInfo.username == 'system:serviceaccount:' + params.metadata.namespace + ':' + "
            "params.spec.template.spec.?serviceAccountName.orValue('default')"
        )


def test_the_admission_policies_check_every_write_that_the_rights_allow() -> None:
    """If no policy checks a new write permission of the agent, this test must list the reason."""
    written = {
        (group, resource)
        for role in ("ClusterRole", "Role")
        for verb, group, resource, _, _ in granted(the(role, "rbac.yaml"))
        if verb not in {"get", "list", "watch"} and group != "authorization.k8s.io"
    }
    guarded = {
        (group, resource)
        for each in POLICIES
        for rule in each["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert guarded == written


def test_the_parameters_of_the_policies_contain_the_defaults_of_the_settings() -> None:
    own = AGENT["metadata"]
    assert (LISTED["name"], LISTED["namespace"]) == (own["name"], own["namespace"])
    listed = {
        name.removeprefix("admission.careen.dev/"): {key.strip() for key in value.split(",")}
        for name, value in LISTED["annotations"].items()
    }
    assert listed["lock-annotation"] == {DEFAULTS["lock_annotation"]}
    assert listed["taints"] == {DEFAULTS["prefer_no_schedule_taint"]}
    assert listed["annotations"] == {keys.KURED_IN_PROGRESS, keys.KURED_MOST_RECENT}, (
        "the list must not allow a key that no agent writes"
    )
    assert listed["labels"] == {""}
    assert not DEFAULTS["pre_reboot_node_labels"] + DEFAULTS["post_reboot_node_labels"]
    text = (MANIFESTS / "admission" / "policies.yaml").read_text()
    assert {f"admission.careen.dev/{name}" for name in listed} == set(
        re.findall(r"admission\.careen\.dev/[\w-]+", text)
    )


def test_the_agent_recognises_the_refusals_of_the_eviction_policy() -> None:
    (policy,) = (each for each in POLICIES if each["metadata"]["name"] == "careen-evict-with-claim")
    assert all(evictions.OWN_POLICY in each["message"] for each in policy["spec"]["validations"])


def test_the_admission_policies_list_the_annotation_keys_of_careen_and_of_people() -> None:
    (own_node,) = (each for each in POLICIES if each["metadata"]["name"] == "careen-own-node")
    said = {each["name"]: each["expression"] for each in own_node["spec"]["variables"]}
    assert said["labels"].startswith(f"['{keys.REBOOT_LABEL}', '{keys.EXCLUDE_FROM_BALANCERS}'] +")
    assert said["annotations"].startswith(f"{list(PROTECTION)} +")
    assert said["taints"].startswith(f"['{keys.DEFAULT_TAINT_KEY}'] +")
    assert f"!key.startsWith('{keys.PREFIX}')" in said["foreignAnnotations"]
    assert f"key in ['{keys.HOLD}', '{keys.REBOOT_NOW}']" in said["foreignAnnotations"]
    assert (
        f"key in ['{keys.RETRY}', '{keys.REQUEST}', '{keys.RECHECK}'] && key in variables.annotationsAfter"
        in said["foreignAnnotations"]
    )


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_the_admission_policies_work_with_other_names_and_namespaces(tmp_path: Path) -> None:
    objects = overlay(tmp_path, "admission", "namespace: reboots\nnamePrefix: a-\nnameSuffix: -z\n")
    (agent,) = (each["metadata"] for each in objects if each["kind"] == "DaemonSet")
    assert (agent["name"], agent["namespace"]) == ("a-careen-z", "reboots")
    policies = {each["metadata"]["name"] for each in objects if each["kind"] == "ValidatingAdmissionPolicy"}
    bindings = [each["spec"] for each in objects if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {each["policyName"] for each in bindings} == policies
    assert len(policies) == len(bindings) == len(POLICIES)
    for each in bindings:
        assert (each["paramRef"]["name"], each["paramRef"]["namespace"]) == (agent["name"], agent["namespace"])


def overlay(tmp_path: Path, component: str, more: str = "") -> list[dict[str, Any]]:
    """Build the base and one component of manifests/ with kustomize, and return the objects. `more` is text that is
    appended to kustomization.yaml.
    """
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    own = tmp_path / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: "
        f"[../manifests]\ncomponents: [../manifests/{component}]\n{more}"
    )
    return kustomize(own)


def kustomize(folder: Path) -> list[dict[str, Any]]:
    done = run(["kubectl", "kustomize", str(folder)])
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


@pytest.mark.parametrize(
    ("component", "role_name", "verbs"),
    [("shadow", "careen-shadow", {"get", "list", "watch"}), ("serve", "careen-view", {"get", "list"})],
)
def test_a_deployment_beside_the_agents_has_no_privileges_and_only_rights_to_read(
    component: str, role_name: str, verbs: set[str]
) -> None:
    file = f"{component}/{component}.yaml"
    deployment = the("Deployment", file)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(pod)
    assert [list(each) for each in pod["volumes"]] == [["name", "emptyDir"]]
    (role,) = (each for each in objects_of("people.yaml") if each["metadata"]["name"] == role_name)
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == verbs
    binding = the("ClusterRoleBinding", file)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    account = {"kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": "careen"}
    assert binding["subjects"] == [account]
    assert the("ServiceAccount", file)["metadata"]["name"] == account["name"]


def test_the_schedulers_pods_use_existing_options_and_may_write_the_lease_of_their_configuration() -> None:
    file = "scheduler/scheduler.yaml"
    deployment = the("Deployment", file)
    template = deployment["spec"]["template"]
    assert not AGENT["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    for each in (deployment, the("PodDisruptionBudget", file)):
        assert each["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    command, *arguments = container["args"]
    given = scheduler.make_context(command, ["--kubeconfig=x", *arguments]).params
    assert given["metrics_port"] == container["ports"][0]["containerPort"]
    folder, name = os.path.split(given["config"])
    assert folder in {each["mountPath"] for each in container["volumeMounts"]}
    mapping = yaml.safe_load(the("ConfigMap", file)["data"][name])
    lease = process_settings(mapping, Configuration.from_mapping(mapping)).lease
    role = set(granted(the("Role", file)))
    for verb in ("get", "update"):
        assert (verb, "coordination.k8s.io", "leases", lease.namespace, lease.name) in role
    account = {"kind": "ServiceAccount", "name": template["spec"]["serviceAccountName"], "namespace": "careen"}
    bindings = [each for each in objects_of(file) if each["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    assert all(each["subjects"] == [account] for each in bindings)
    assert {each["roleRef"]["name"] for each in bindings} == {
        "careen-scheduler",
        "careen-shadow",
        "system:kube-scheduler",
        "system:volume-scheduler",
    }


def test_the_page_in_the_cluster_is_reached_only_by_a_port_forward() -> None:
    objects = list(objects_of("serve/serve.yaml"))
    assert {each["kind"] for each in objects} == {"ServiceAccount", "ClusterRoleBinding", "Deployment"}
    template = the("Deployment", "serve/serve.yaml")["spec"]["template"]
    assert not AGENT["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert "ports" not in container
    command, *arguments = container["args"]
    context = serve.make_context(command, ["--kubeconfig=x", *arguments])
    assert (context.params["host"], context.params["port"]) == ("127.0.0.1", 8040)
    assert context.params["ds_name"] == AGENT["metadata"]["name"]


def test_the_pods_of_careen_shadow_use_existing_options_and_are_not_selected_by_the_daemonset() -> None:
    deployment = the("Deployment", "shadow/shadow.yaml")
    template = deployment["spec"]["template"]
    assert not AGENT["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    command, *arguments = container["args"]
    context = shadow.make_context(command, ["--kubeconfig=x", *(each for each in arguments if "snapshot" not in each)])
    assert context.params["metrics_port"] == container["ports"][0]["containerPort"]
    assert context.params["ds_name"] == AGENT["metadata"]["name"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    (snapshot,) = (each.partition("=")[2] for each in arguments if each.startswith("--snapshot="))
    assert str(Path(snapshot).parent) in mounts
