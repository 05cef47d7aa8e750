"""The image without a container daemon: the Dockerfile's own removals, carried out on a copy of what is
installed here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.patience import run

DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTALLED = Path(sysconfig.get_paths()["purelib"])


def removals() -> list[str]:
    """The paths below site-packages that the image does not carry."""
    (text,) = re.findall(r"site-packages && rm -rf((?: \\\n +\S+)+)", DOCKERFILE)
    return re.findall(r"^ +([^\s\\]+)", text, re.MULTILINE)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """site-packages as in the image."""
    site = tmp_path_factory.mktemp("image") / "site-packages"
    not_in_the_image = {"mypy", "mypyc", "ruff", "pytest", "_pytest", "hypothesis", "grimp", "importlinter"}
    shutil.copytree(
        INSTALLED,
        site,
        copy_function=link_or_copy,
        ignore=lambda folder, names: not_in_the_image & set(names) if Path(folder) == INSTALLED else set(),
    )
    for path in removals():
        shutil.rmtree(
            site / path, ignore_errors=path in {"pip", "setuptools"}
        )  # those two may be installed elsewhere here
    return site


def run_in_the_image(slim: Path, program: str) -> subprocess.CompletedProcess[str]:
    # -S: nothing of the real site-packages comes in by a side door.
    path = os.pathsep.join(map(str, (ROOT / "operator", ROOT, slim)))
    return run([sys.executable, "-S", "-c", program], env={"PYTHONPATH": path, "PATH": "/nonexistent"}, cwd=slim)


def test_the_agent_is_complete_without_what_the_image_leaves_out(slim: Path, tmp_path: Path) -> None:
    """Every module of the agent loads, and the client still reads a kubeconfig and sends a request."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: s, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: c, context: {cluster: s, user: u}}]\n"
    )
    packages = (
        '"careen.agent", "careen.cluster", "careen.host", "careen.services", "careen.core", "careen.cli", '
        '"careen.report", "scheduler_core"'
    )
    done = run_in_the_image(
        slim,
        f"""
import asyncio, pkgutil
from importlib import import_module
from pathlib import Path
for package in ({packages}):
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
import kubernetes, kopf
from careen.cluster.wire import client, errors
from careen.cluster.wire.transport import Request
assert kubernetes.__file__.startswith({str(slim)!r}), kubernetes.__file__
transport = client.connect(Path({str(kubeconfig)!r}), part="test")
try:
    asyncio.run(transport.send(Request(method="GET", path="/version")))
except errors.NotSent as refused:
    print("asked:", refused)
""",
    )
    assert done.returncode == 0, done.stderr
    assert "asked: GET /version" in done.stdout


def test_what_the_image_leaves_out_is_worth_it(slim: Path) -> None:
    gone = [path for path in removals() if (slim / path).exists()]
    assert gone == []
    assert {"kubernetes/aio", "kubernetes/client/api"} <= set(removals())


def test_the_image_carries_no_second_kubernetes_client(slim: Path) -> None:
    """kopf imports whatever client it finds; each costs memory on every node."""
    assert [name for name in ("kubernetes_asyncio", "pykube", "pandas") if (slim / name).exists()] == []


def test_everything_the_dockerfile_copies_is_let_through_by_dockerignore() -> None:
    let_through = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    }
    assert copied == let_through
    assert [name for name in sorted(copied) if not (ROOT / name).exists()] == []
