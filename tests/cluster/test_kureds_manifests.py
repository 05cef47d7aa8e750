"""Tests kured's own manifests with only the image changed: its roles, its flags, its namespace.

The tests simulate the parts of a container: the folder of the sentinel, the access to the host, the pod's host name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from tests.cluster.harness.api import Object
from tests.cluster.harness.cluster import KURED, Cluster
from tests.cluster.harness.machines.agents import CAREEN_PYTHONPATH, clean_environment
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.machines.hosts import Host, Launch, in_own_namespaces
from tests.cluster.harness.story import ZONES, Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster

MANIFESTS = Path(__file__).parent / "kured"
IMAGE = "careen.invalid/careen:0.1.0"
FIELDS = {"spec.nodeName": lambda host: host.name}


def with_the_image(*files: str) -> list[Object]:
    """Return kured's objects. The only change is careen's image."""
    found = []
    for file in files:
        lines = (MANIFESTS / file).read_text().splitlines()
        changed = [f"{line.partition('image:')[0]}image: {IMAGE}" if " image: " in line else line for line in lines]
        assert sum(old != new for old, new in zip(lines, changed, strict=True)) == (file != "kured-rbac.yaml")
        found += [item for item in yaml.safe_load_all("\n".join(changed)) if item]
    return found


class InKuredsPlace(Story):
    """A test in which the agents start with the arguments of the DaemonSet `kube-system/kured`."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        Cluster.__init__(self, plane, KURED, folder)
        self.hosts, self.flags, self.proxies = {}, [], {}
        self.count_requests_from_now()
        for name in ("careen", "kured"):
            program = folder / name
            program.write_text(f"#!{sys.executable}\nfrom careen.__main__ import main\nmain()\n")
            program.chmod(0o755)

    def install(self, count: int, daemonset: str = "kured-ds.yaml", **change: Sequence[str]) -> list[Host]:
        """Install kured's objects, and start `count` hosts with agents. `change` replaces fields of kured's container,
        as a person may do.
        """
        objects = with_the_image("kured-rbac.yaml", daemonset)
        pod = next(each for each in objects if each["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        (self.container,) = pod["containers"]
        changed = {**self.container, **{key: list(value) for key, value in change.items()}}
        self.container = {key: value for key, value in changed.items() if value}
        pod["containers"] = [self.container]
        self.apply(*objects)
        hosts = [
            Host(name=f"n{number:02}", zone=ZONES[number % 3], folder=self.folder / "hosts" / f"n{number:02}")
            for number in range(count)
        ]
        self.hosts = {host.name: host for host in hosts}
        self.start_fleet(hosts, self._launch)
        self.agents_answer()
        return hosts

    def _launch(self, host: Host, token: str) -> Launch:
        secrets = host.folder / "serviceaccount"
        secrets.mkdir(exist_ok=True)
        (secrets / "token").write_text(token)
        (secrets / "ca.crt").write_bytes(self.plane.certificate_authority.read_bytes())
        (secrets / "namespace").write_text(KURED.namespace)
        program, *flags = [*self.container.get("command", ["careen"]), *self.container.get("args", [])]
        argv = [str(self.folder / Path(program).name)]
        argv += [flag.replace("/sentinel/", f"{host.sentinel.parent}/") for flag in flags]
        fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in self.container["env"]}
        env = {
            **clean_environment(),
            **{name: FIELDS[path](host) for name, path in fields.items()},
            "PYTHONPATH": CAREEN_PYTHONPATH,
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.plane.port),
            # A real container has its pod's name as host name, has ports of its own, and reaches its host. Here, these
            # variables give the agent the name, a free port, and the files of the simulated host.
            "POD_NAME": host.agent_pod_name,
            "CAREEN_METRICS_PORT": str(host.metrics_port()),
            "CAREEN_HOST_EXEC": "direct",
            "CAREEN_REBOOT_COMMAND": str(host.reboot_command),
            "CAREEN_BOOT_ID_FILE": str(host.boot_id_file),
            # From a Service of that name.
            "KURED_METRICS_PORT": "tcp://10.0.0.1:8080",
            "KURED_METRICS_SERVICE_HOST": "10.0.0.1",
        }
        return Launch(argv=in_own_namespaces(tuple(argv), secrets), env=env)

    def denied(self) -> list[str]:
        """Return verb and path of each agent's request that was answered with 403."""
        return [
            f"{event['verb']} {event['requestURI'].partition('?')[0]}"
            for event in self.plane.audit_events(self._audit_from)
            if event["user"]["username"] == KURED.user and event.get("responseStatus", {}).get("code") == 403
        ]


@pytest.fixture
def kureds(plane: ControlPlane, tmp_path: Path) -> Iterator[InKuredsPlace]:
    plane.check()
    story = InKuredsPlace(plane, tmp_path)
    yield story
    story.close()
    for item in with_the_image("kured-rbac.yaml"):
        kind = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}.get(item["kind"])
        where = "" if kind else "/namespaces/kube-system"
        plural = kind or {"Role": "roles", "RoleBinding": "rolebindings"}[item["kind"]]
        story.admin.delete(f"/apis/rbac.authorization.k8s.io/v1{where}/{plural}/kured")
    story.sweep()


def test_a_roll_out_with_kureds_roles_and_arguments_finishes(kureds: InKuredsPlace) -> None:
    hosts = kureds.install(3)
    kureds.workloads(deployment("web", 4))
    kureds.need_reboot(hosts)
    kureds.finishes(hosts, 240)
    kureds.judge()
    assert kureds.denied() == []
    said = hosts[0].log.read_text()
    for words in (
        "lacks the right to get configmaps kube-system/careen. Without this right the agent reads no ConfigMap",
        "lacks the right to list nodes. Without this right the agent reads the Nodes one by one",
        "lacks the right to patch daemonsets.apps kube-system/kured. Without this right the agent writes claims into",
        'to a ClusterRole: - {apiGroups: [""], resources: [nodes], verbs: [list]}',
        'to a Role in kube-system: - {apiGroups: [""], resources: [configmaps], resourceNames: [careen], verbs: [get]}',
        "the agent makes no forecasts",
        "the agent posts no Events in that namespace",
    ):
        assert words in said, words
    starts = said.count("the agent serves metrics, health and readiness on port")
    assert said.count("the agent lacks the right to list nodes.") == starts, (
        "each start of the agent reports the missing right once"
    )
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "change",
    [
        {"command": [], "args": ["--reboot-sentinel=/sentinel/reboot-required", "--period=1h"]},
        {"command": ["/usr/bin/kured"], "args": ["--reboot-sentinel=/sentinel/reboot-required", '--notify-url=""']},
    ],
    ids=["arguments only", "program and flags"],
)
def test_the_agent_starts_with_kureds_arguments_with_and_without_a_command(
    kureds: InKuredsPlace, change: dict[str, list[str]]
) -> None:
    (host,) = kureds.install(1, **change)
    kureds.need_reboot([host])
    kureds.finishes([host], 120)
    assert kureds.denied() == []


def test_agents_that_cannot_list_nodes_still_count_a_node_that_is_down(kureds: InKuredsPlace) -> None:
    first, second = kureds.install(2)
    kureds.cordon(second)
    kureds.need_reboot([first])
    kureds.wait_for("the first node waits for the second node", lambda: "nodes-down" in kureds.refusals(first), 120)
    kureds.cordon(second, cordoned=False)
    kureds.finishes([first], 120)
    assert kureds.denied() == []
