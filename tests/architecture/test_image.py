"""Tests the image without a container runtime. A fixture copies the installed packages and removes from the copy what
the Dockerfile removes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source_tree import ROOT
from tests.patience import run

DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTALLED = Path(sysconfig.get_paths()["purelib"])


# numpy imports some of its parts only when a function is called: `unique` and `isin` need numpy.ma.
CALLS_OF_NUMPY = "import numpy as np; a = np.arange(99) * 10**12; print(np.isin(a, np.unique(a[::2])).sum())"


def removals() -> list[str]:
    """Return the paths below site-packages that the Dockerfile removes, as shell patterns."""
    (text,) = re.findall(r"site-packages && rm -rf((?: \\\n {6}[^\\\n]*[^\\\s])+)", DOCKERFILE)
    return re.findall(r"[^\s\\]+", text)


def not_installed() -> list[str]:
    """Return the packages of requirements.lock that the Dockerfile does not install."""
    (names,) = re.findall(r"unused = /\^\(([\w|-]+)\)==/", DOCKERFILE)
    return names.split("|")


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy site-packages without the paths that the image removes, and return the copy."""
    site = tmp_path_factory.mktemp("image") / "site-packages"
    not_in_the_image = {"mypy", "mypyc", "ruff", "pytest", "_pytest", "hypothesis", "grimp", "importlinter"}
    shutil.copytree(
        INSTALLED,
        site,
        copy_function=link_or_copy,
        ignore=lambda folder, names: not_in_the_image & set(names) if Path(folder) == INSTALLED else set(),
    )
    for pattern in removals():
        for path in list(site.glob(pattern.rstrip("/"))):
            if path.is_dir() or not pattern.endswith("/"):
                remove(path)
    for name in not_installed():
        tops = {path.parts[0] for path in metadata.distribution(name).files or ()}
        for top in tops - {".."}:
            if (site / top).exists():
                remove(site / top)
    return site


def run_in_the_image(slim: Path, program: str) -> subprocess.CompletedProcess[str]:
    # -S keeps Python from adding the real site-packages.
    path = os.pathsep.join(map(str, (ROOT / "operator", ROOT, slim)))
    return run([sys.executable, "-S", "-c", program], env={"PYTHONPATH": path, "PATH": "/nonexistent"}, cwd=slim)


def test_the_agent_works_without_the_modules_that_the_image_removes(slim: Path, tmp_path: Path) -> None:
    """The test imports each module of the agent, reads a kubeconfig, and sends a request."""
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


def test_the_forecast_works_without_the_modules_that_the_image_removes(slim: Path) -> None:
    done = run_in_the_image(slim, CALLS_OF_NUMPY)
    assert (done.stdout, done.stderr) == ("50\n", "")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python have other files")
@pytest.mark.parametrize("pattern", sorted(removals()))
def test_every_removal_pattern_in_the_dockerfile_matches_an_installed_path(pattern: str) -> None:
    """The Dockerfile removes the matching paths from site-packages with `rm -rf`, which ignores a missing path. If a
    library renamed a path, the image would contain the renamed path, and no build would fail.
    """
    assert list(INSTALLED.glob(pattern)) != []


def test_a_removed_distribution_has_no_metadata_in_the_image(slim: Path) -> None:
    """If the metadata remained, the bill of materials would list the removed package."""
    empty = []
    for each in metadata.distributions(path=[str(slim)]):
        tops = {path.parts[0] for path in each.files or () if path.suffix in {".py", ".so"} and ".." not in path.parts}
        if tops and not any((slim / top).exists() for top in tops):
            empty.append(each.metadata["Name"])
    assert set(empty) <= {"mypy", "ruff", "pytest", "hypothesis", "grimp", "import-linter"}


def test_the_image_contains_only_one_kubernetes_client(slim: Path) -> None:
    """kopf imports each Kubernetes client library that it finds, so each further library would cost memory on every
    node.
    """
    assert [name for name in ("kubernetes_asyncio", "pykube", "pandas") if (slim / name).exists()] == []


def test_dockerignore_lets_through_exactly_the_files_that_the_dockerfile_copies() -> None:
    let_through = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]
    }
    assert copied == let_through
    assert [name for name in sorted(copied) if not (ROOT / name).exists()] == []


# ---- how it is called ----


def test_every_program_of_the_image_starts_with_sigterm_blocked() -> None:
    """The program `env` of the base image blocks SIGTERM, so that the signal waits until Python has installed careen's
    signal handler.
    """
    (expression, files) = re.findall(r"^RUN sed -i '(1s.*)' (.*)$", DOCKERFILE, re.MULTILINE)[0]
    assert {Path(file).name for file in files.split()} == set(PROJECT["project"]["scripts"])
    assert {str(Path(file).parent) for file in files.split()} == {"/opt/careen/bin"}
    first = run(["sed", expression], input="#!/opt/careen/bin/python\nimport sys\n").stdout.splitlines()[0]
    assert first == "#!/usr/bin/env -S --block-signal=TERM /opt/careen/bin/python"


def test_the_image_has_the_program_name_and_the_user_of_kured() -> None:
    final = DOCKERFILE.split("FROM ${BASE}\n")[1]
    assert "ln -s /opt/careen/bin/kured /usr/bin/kured" in final
    assert PROJECT["project"]["scripts"]["kured"] == PROJECT["project"]["scripts"]["careen"]
    # kured's manifests name no user: with one in the image a privileged container could not enter PID 1's namespaces.
    assert "USER" not in [line.split(" ")[0] for line in final.splitlines()]
    assert 'ENTRYPOINT ["careen"]' in final
    assert 'CMD ["agent"]' in final


# ---- content of the image ----

LOCKS = ("requirements.lock", "requirements-build.lock")
LIBRARY = tomllib.loads((ROOT / "scheduler_core" / "pyproject.toml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WANTED = {
    "requirements.lock": [
        *(each for each in PROJECT["project"]["dependencies"] if not each.startswith("scheduler_core")),
        *LIBRARY["project"]["dependencies"],
    ],
    "requirements-build.lock": [*PROJECT["build-system"]["requires"], *LIBRARY["build-system"]["requires"]],
}
IMAGE = {"python_version": "3.13", "python_full_version": "3.13.0", "sys_platform": "linux", "platform_system": "Linux"}


def locked(file: str) -> dict[str, tuple[str, list[str]]]:
    """Read the lock file, and return the version and the hashes of each package."""
    text = (ROOT / file).read_text()
    blocks = re.findall(r"^([\w.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    # Only pinned requirements with hashes: no index URL, no requirement without a hash.
    assert "".join(f"{name}=={version} \\\n{hashes}" for name, version, hashes in blocks) == "".join(
        f"{line}\n" for line in text.splitlines() if not line.startswith("#")
    )
    return {canonicalize_name(name): (version, re.findall(r"sha256:\w+", hashes)) for name, version, hashes in blocks}


def missing(file: str, requirement: Requirement) -> bool:
    pins = locked(file)
    if requirement.marker and not requirement.marker.evaluate({**IMAGE, "extra": ""}):
        return False
    name = canonicalize_name(requirement.name)
    return name not in pins or not requirement.specifier.contains(pins[name][0], prereleases=True)


@pytest.mark.parametrize("file", LOCKS)
def test_the_requirements_lock_has_every_dependency_of_pyproject(file: str) -> None:
    assert [text for text in WANTED[file] if missing(file, Requirement(text))] == []


def test_the_requirements_lock_has_every_dependency_of_its_packages() -> None:
    """The test checks only packages whose installed version equals the locked version, because the installed metadata
    lists the dependencies.
    """
    looked_at = []
    for name, (version, _) in locked("requirements.lock").items():
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if installed.version == version:
            looked_at.append(name)
            wanted = [Requirement(text) for text in installed.requires or ()]
            assert [str(each) for each in wanted if missing("requirements.lock", each)] == [], name
    assert len(looked_at) >= 10


@pytest.mark.parametrize("file", LOCKS)
def test_the_requirements_lock_has_the_hashes_of_every_platform(file: str) -> None:
    """A compiled package has one file for each platform and Python version, so a lock that was made for one platform
    would have one hash for each package.
    """
    compiled = {"aiohttp", "numpy", "pyyaml", "msgspec", "yarl"}
    counts = {name: len(hashes) for name, (_, hashes) in locked(file).items()}
    assert {name: count for name, count in counts.items() if name in compiled and count < 20} == {}
    only_a_wheel = {"cronsim"}  # no source archive since 2.7; the wheel is for every platform
    assert {name: count for name, count in counts.items() if count < 2 and name not in only_a_wheel} == {}
    assert file != "requirements.lock" or compiled <= counts.keys()


def test_the_packages_that_the_image_does_not_install_are_in_the_lock() -> None:
    assert set(not_installed()) <= locked("requirements.lock").keys()


def test_the_image_installs_every_package_with_a_hash() -> None:
    installs = re.findall(r"-m pip (?:--python \S+ )?(?:install|wheel)(.*?)(?:&&|\n(?!\s))", DOCKERFILE, re.DOTALL)
    assert len(installs) == 4
    assert [each for each in installs if "--require-hashes" not in each and "--no-index" not in each] == []
    assert all("--no-deps" in each for each in installs)
    assert "--no-build-isolation" in DOCKERFILE
    assert set(re.findall(r"-r (\S+)", DOCKERFILE)) == {"/tmp/used.lock", "requirements-build.lock"}
    assert "requirements.lock > /tmp/used.lock" in DOCKERFILE


def test_both_stages_of_the_dockerfile_use_the_same_base_image() -> None:
    assert [line for line in DOCKERFILE.splitlines() if line.startswith("FROM ")] == [
        "FROM ${BASE} AS build",
        "FROM ${BASE}",
    ]
    (base,) = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/python:3\.13-slim-trixie(@sha256:[0-9a-f]{64})?", base)


# ---- make pin-base ----

OF_THE_INDEX = f"sha256:{'a' * 64}"


class Registry(BaseHTTPRequestHandler):
    """A fake container registry. It requires a token, and gives a token to every caller."""

    digest = OF_THE_INDEX

    def do_HEAD(self) -> None:
        assert self.path == "/v2/library/python/manifests/3.11-slim"
        assert "application/vnd.oci.image.index.v1+json" in self.headers["Accept"]
        if self.headers.get("Authorization") != "Bearer TOKEN":
            self.send_response(401)
            realm = f"http://127.0.0.1:{self.server.server_address[1]}/token"
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="s",scope="pull"')
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", self.digest)
        self.end_headers()

    def do_GET(self) -> None:
        assert self.path == "/token?service=s&scope=pull"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"token": "TOKEN"}')

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def pin_base(dockerfile: Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-S", str(ROOT / "mk" / "pin_base.py"), str(dockerfile)], env={"no_proxy": "*"})


@pytest.mark.parametrize("before", ["", f"@sha256:{'0' * 64}"], ids=["a tag", "an older digest"])
def test_pin_base_writes_the_digest_that_the_registry_reports(registry: str, tmp_path: Path, before: str) -> None:
    file = tmp_path / "Dockerfile"
    text = f"# first\nARG BASE={registry}/library/python:3.11-slim{before}\n\nFROM ${{BASE}}\n"
    file.write_text(text)
    done = pin_base(file)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        file.read_text() == f"# first\nARG BASE={registry}/library/python:3.11-slim@{OF_THE_INDEX}\n\nFROM ${{BASE}}\n"
    )


def test_pin_base_does_not_change_the_dockerfile_if_no_registry_answers(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("ARG BASE=127.0.0.1:1/library/python:3.11-slim\n")
    done = pin_base(file)
    assert done.returncode == 1
    assert done.stderr.startswith("pin-base: the registry 127.0.0.1:1 gives no digest for library/python:3.11-slim (")
    assert "Traceback" not in done.stderr
    assert file.read_text() == "ARG BASE=127.0.0.1:1/library/python:3.11-slim\n"


def test_pin_base_refuses_an_invalid_digest(registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "digest", "sha256:x\tRUN evil")
    file = tmp_path / "Dockerfile"
    file.write_text(f"ARG BASE={registry}/library/python:3.11-slim\n")
    done = pin_base(file)
    assert (done.returncode, "without a digest" in done.stderr) == (1, True)
    assert file.read_text() == f"ARG BASE={registry}/library/python:3.11-slim\n"


def test_pin_base_finds_its_line_in_the_dockerfile(tmp_path: Path) -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("pin_base", ROOT / "mk" / "pin_base.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module._LINE.search(DOCKERFILE)
    assert found is not None
    assert found.groups() == ("docker.io", "library/python", "3.13-slim-trixie")
