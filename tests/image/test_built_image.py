"""Tests that commands, forecasts and messages work in the image, and that the image is as small as documented."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import scheduler_core
from drydock.server.testing import server_in_thread, write_kubeconfig
from scheduler_core.snapshot.dump import Header, write_dump
from tests.architecture.test_image import CALLS_OF_NUMPY
from tests.image.conftest import BASE, ROOT, Container, buildah, printed
from tests.patience import run

pytestmark = pytest.mark.image

MOST_MEGABYTES = 115  # careen's own layers
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
LIBRARY_VERSION = scheduler_core.__version__


def test_help_in_the_image_lists_the_commands(container: Container) -> None:
    done = container.run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert {"agent", "status", "why", "forecast", "plan"} <= set(re.findall(r"^  (\w+) ", done.stdout, re.MULTILINE))


def test_careen_status_without_a_cluster_says_how_to_give_a_kubeconfig(container: Container) -> None:
    done = container.run("status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no cluster to read" in done.stderr
    assert "--kubeconfig FILE" in done.stderr


def test_the_image_without_arguments_starts_the_agent_which_reports_what_is_missing(container: Container) -> None:
    done = container.run()
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    assert "careen agent: the agent does not know which Node it serves: give --node-id" in done.stderr


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Run an embedded API server with one node, and yield the path of a kubeconfig for it."""
    path = tmp_path / "kubeconfig"
    with server_in_thread() as server:
        write_kubeconfig(path, server.url)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        server.seed({**node, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}})
        daemonset = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "careen", "namespace": "careen"},
        }
        labels = {"name": "careen"}
        containers = [{"name": "agent", "image": "careen"}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        server.seed({**daemonset, "spec": {"selector": {"matchLabels": labels}, "template": template}})
        path.chmod(0o644)  # the image has another user
        yield path


def test_commands_in_the_image_read_a_kubeconfig_and_query_the_cluster(container: Container, kubeconfig: Path) -> None:
    volumes, env = {kubeconfig: "/tmp/kubeconfig"}, ("KUBECONFIG=/tmp/kubeconfig",)
    done = container.run("status", volumes=volumes, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^n1 +Idle", done.stdout, re.MULTILINE)
    done = container.run("forecast", "n1", "--output", "json", volumes=volumes, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["node"] == "n1"
    plan = container.run("plan", volumes=volumes, env=env)
    assert plan.returncode == 0, plan.stderr


def test_a_forecast_in_the_image_runs_in_its_child_process(container: Container, tmp_path: Path) -> None:
    """The child process has a memory limit, and must load numpy and its bundled libraries within that limit."""
    path = tmp_path / "dump.json.gz"
    nodes = [
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}}
        for name in ("n1", "n2")
    ]
    requests = {"requests": {"cpu": "500m"}}
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "shop",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
            ],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": requests}]},
        "status": {"phase": "Running"},
    }
    lists = [
        {"kind": "NodeList", "apiVersion": "v1", "items": nodes},
        {"kind": "PodList", "apiVersion": "v1", "items": [pod]},
    ]
    with path.open("wb") as file:
        header = Header(kube_version="v1.36.0", taken_at="2026-01-02T03:04:05Z")
        write_dump(header, [json.dumps(each).encode() for each in lists], file)
    path.chmod(0o644)
    done = container.run("forecast", "n1", "--from", "/tmp/dump.json.gz", volumes={path: "/tmp/dump.json.gz"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"shop/p\b.*\bn2\b", done.stdout), done.stdout


def test_the_numpy_functions_that_a_forecast_calls_work_in_the_image(container: Container) -> None:
    assert container.ok("python", "-c", CALLS_OF_NUMPY) == "50\n"


def test_scheduler_core_is_installed_as_a_separate_package(container: Container) -> None:
    assert container.ok("python", "-m", "scheduler_core", "--version") == f"scheduler_core, version {LIBRARY_VERSION}\n"
    assert container.ok("careen", "--version") == f"careen, version {VERSION}\n"


def test_every_module_in_the_image_can_be_imported(container: Container) -> None:
    said = container.ok(
        "python",
        "-",
        stdin="""
import pkgutil
from importlib import import_module
count = 0
for package in ("careen", "scheduler_core"):
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        if not module.name.endswith(".__main__") and module.name != "careen.cli.demo":  # drydock stays in the source
            import_module(module.name)
            count += 1
import kopf
from prometheus_api_client import PrometheusConnect
PrometheusConnect(url="http://127.0.0.1:9")
print(count)
""",
    )
    assert int(said) > 200


def test_the_image_can_send_messages_to_every_service_of_apprise(container: Container) -> None:
    """Some modules are removed from the image. Every kind of notify URL must work without these modules."""
    program = "import apprise; print(*sorted(apprise.plugins.N_MGR.schemas()))"
    inside = set(container.ok("python", "-c", program).split())
    here = run([sys.executable, "-W", "ignore", "-c", program])
    assert inside == set(here.stdout.split()), here.stderr
    assert {"slack", "mailto", "discord", "workflows"} <= inside
    sends = "import apprise; print(apprise.Apprise().add('slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ'))"
    assert container.ok("python", "-c", sends) == "True\n"


def test_the_image_runs_as_root_because_kureds_manifests_set_no_user(container: Container) -> None:
    assert not container.config.get("User")
    assert container.ok("id", "-u") == "0\n"


def test_every_module_in_the_image_has_bytecode(container: Container) -> None:
    """The root file system is read-only, so a module without bytecode would be compiled in memory at each start."""
    said = container.ok(
        "python",
        "-",
        stdin="""
import importlib.util, pathlib, sys, sysconfig
import careen.agent.handlers, careen.cli.agent
files = {module.__spec__.origin for module in list(sys.modules.values()) if getattr(module, "__spec__", None)}
sources = [pathlib.Path(file) for file in files if str(file).endswith(".py")]
site = pathlib.Path(sysconfig.get_path("purelib"))
sources += site.rglob("*.py")
missing = [str(path) for path in sources if not pathlib.Path(importlib.util.cache_from_source(path)).exists()]
orphans = [str(path) for path in site.rglob("*.pyc")
           if not pathlib.Path(importlib.util.source_from_cache(path)).exists()]
print(len(sources) > 1000, missing[:5], orphans[:5])
""",
    )
    assert said == "True [] []\n"


def test_only_modules_of_commands_keep_their_docstrings_in_the_image(container: Container) -> None:
    """The help of a command is its docstring. All other docstrings would cost each agent two megabytes of memory."""
    program = "import asyncio, careen.cli.why, careen.core.decide, scheduler_core as s; "
    program += "print([m.__doc__ is None for m in (asyncio.run, careen.core.decide, s, careen.cli.why)])"
    assert container.ok("python", "-c", program) == "[True, True, True, False]\n"


def test_the_image_contains_no_file_of_the_build_machine(container: Container) -> None:
    found = container.program("ls", "-d", "/source", "/tmp/wheel", "/opt/build")
    assert found.stdout == ""
    # mk/image/build mounts the computer's pip.conf, if there is one. An empty file remains at that path.
    assert container.program("cat", "/etc/pip.conf").stdout == ""
    version = container.ok("python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    assert container.ok("ls", "/opt/careen/bin").split() == sorted(
        {"python", "python3", f"python{version}", *PROJECT["scripts"]}
    )


def test_the_labels_of_the_image_contain_its_name_and_version(container: Container) -> None:
    labels = container.config["Labels"]
    prefix = "org.opencontainers.image."
    assert {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} >= {
        *("title", "description", "version", "licenses", "base.name")
    }
    assert labels[prefix + "version"] == VERSION
    assert labels[prefix + "base.name"] == BASE


def test_the_layers_that_careen_adds_to_the_base_image_are_small(image: str, tmp_path: Path) -> None:
    for name, folder in ((image, "image"), (BASE, "base")):
        printed(buildah("push", "--quiet", "--compression-format", "gzip", name, f"oci:{tmp_path / folder}"))
    report = subprocess.run(
        [sys.executable, str(ROOT / "mk" / "image" / "size.py"), str(tmp_path / "image"), str(tmp_path / "base")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    print(report)
    (ours,) = re.findall(r"^our own layers: +([\d.]+) MB, compressed +[\d.]+ MB", report, re.MULTILINE)
    assert 50 < float(ours) <= MOST_MEGABYTES, report


SPDX_TOOL = ROOT / ".cache" / "spdx-tool" / "bin" / "pyspdxtools"


def judged_by_spdx(document: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the document with the SPDX project's validator, which knows all of SPDX 2.3. Return the validator's exit
    code and output.
    """
    assert SPDX_TOOL.exists(), f"no {SPDX_TOOL}: run `make test-image`, which installs it"
    (folder / "careen.spdx.json").write_text(document)
    return run([str(SPDX_TOOL), "--infile", str(folder / "careen.spdx.json"), "--version", "SPDX-2.3"])


def bill_of(container: Container) -> str:
    return container.ok("python", "-", stdin=(ROOT / "mk" / "image" / "sbom.py").read_text())


def test_the_spdx_validator_accepts_the_bill_of_materials(container: Container, tmp_path: Path) -> None:
    done = judged_by_spdx(bill_of(container), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_spdx_validator_rejects_an_unknown_licence(container: Container, tmp_path: Path) -> None:
    sbom = json.loads(bill_of(container))
    sbom["packages"][-1]["licenseDeclared"] = "Apache 2"
    done = judged_by_spdx(json.dumps(sbom), tmp_path)
    assert done.returncode != 0
    assert "Unrecognized license reference: Apache 2" in done.stderr


def test_the_bill_of_materials_lists_exactly_the_installed_packages(container: Container) -> None:
    sbom = json.loads(bill_of(container))
    purls = {ref["referenceLocator"] for package in sbom["packages"] for ref in package.get("externalRefs", [])}
    assert {f"pkg:pypi/careen@{VERSION}", f"pkg:pypi/scheduler-core@{LIBRARY_VERSION}"} <= purls
    assert any(purl.startswith("pkg:deb/debian/libc6@") for purl in purls)
    locked = dict(re.findall(r"^([\w.-]+)==(\S+) ", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    inside = {purl.removeprefix("pkg:pypi/").split("@")[0] for purl in purls if purl.startswith("pkg:pypi/")}
    (unused,) = re.findall(r"unused = /\^\(([\w|-]+)\)==/", (ROOT / "Dockerfile").read_text())
    assert inside == (set(locked) - set(unused.split("|"))) | {"careen", "scheduler-core"}
