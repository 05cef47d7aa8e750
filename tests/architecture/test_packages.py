"""Tests the distributions careen and scheduler_core, built as `make dist` builds them."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import scheduler_core
from tests.architecture.source_tree import ROOT
from tests.patience import run

HOME = {"careen": ROOT, "scheduler_core": ROOT / "scheduler_core"}
NAMES = sorted(HOME)
SENT = ("*.py", "*.css", "*.html", "*.js", "*.svg")  # the others are the files of the live page


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheels and the sdists of both distributions, and return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    for home in HOME.values():
        built(home, folder)
    return folder


def built(home: Path, folder: Path, *kinds: str) -> None:
    done = run([sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *kinds], cwd=home)
    assert done.returncode == 0, done.stderr


def wheel(dist: Path, name: str) -> Path:
    (path,) = dist.glob(f"{name}-*.whl")
    return path


def sdist(dist: Path, name: str) -> Path:
    (path,) = dist.glob(f"{name}-*.tar.gz")
    return path


def metadata(dist: Path, name: str) -> Message:
    with zipfile.ZipFile(wheel(dist, name)) as archive:
        (path,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(path))


def test_twine_check_reports_nothing(dist: Path) -> None:
    done = run([sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(dist.iterdir()))])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 4


@pytest.mark.parametrize("name", NAMES)
def test_the_metadata_of_each_package_is_complete(dist: Path, name: str) -> None:
    said = metadata(dist, name)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == ">=3.11"
    classifiers = said.get_all("Classifier")
    assert {"Programming Language :: Python :: 3.11", "Topic :: System :: Clustering"} <= set(classifiers)
    assert not [each for each in classifiers if each.startswith("License ::")]  # the expression already contains it


@pytest.mark.parametrize("name", NAMES)
def test_the_long_description_links_no_file_of_the_repository(dist: Path, name: str) -> None:
    text = metadata(dist, name).get_payload()
    assert isinstance(text, str)
    assert text.count("\n## ") == (HOME[name] / "README.md").read_text().count("\n## ")
    assert [link for link in re.findall(r"\]\(([^)\s]+)", text) if not link.startswith("https://")] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_wheel_contains_exactly_the_sources_of_its_package(dist: Path, name: str) -> None:
    top = ROOT / "operator" if name == "careen" else ROOT
    kept = {path for kind in SENT for path in (top / name).rglob(kind)} | {top / name / "py.typed"}
    with zipfile.ZipFile(wheel(dist, name)) as archive:
        inside = {each for each in archive.namelist() if ".dist-info/" not in each}
    assert inside == {str(path.relative_to(top)) for path in kept if path.exists()}


@pytest.mark.parametrize("name", NAMES)
def test_the_sdist_of_a_package_builds_the_same_wheel_as_the_repository(dist: Path, name: str, tmp_path: Path) -> None:
    with tarfile.open(sdist(dist, name)) as archive:
        archive.extractall(tmp_path, filter="data")
    (home,) = tmp_path.iterdir()
    built(home, tmp_path / "out", "--target", "wheel")
    assert wheel(tmp_path / "out", name).read_bytes() == wheel(dist, name).read_bytes()


def test_the_sdist_of_careen_contains_the_repository(dist: Path) -> None:
    """A person who has only the sdist must be able to run the tests, build the image, and install scheduler_core."""
    tracked = run(["git", "ls-files"], cwd=ROOT)
    if tracked.returncode != 0:
        pytest.skip("this folder is not a git checkout")
    with tarfile.open(sdist(dist, "careen")) as archive:
        inside = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    wanted = {path for path in tracked.stdout.splitlines() if (ROOT / path).is_file()}
    assert wanted - inside <= {".git-blame-ignore-revs"}
    assert {path for path in inside if path.startswith((".venv/", ".cache/", "dist/"))} == set()


def test_careen_requires_the_exact_version_of_scheduler_core(dist: Path) -> None:
    assert f"scheduler-core=={scheduler_core.__version__}" in {
        each.replace("_", "-") for each in metadata(dist, "careen").get_all("Requires-Dist")
    }
    assert metadata(dist, "scheduler_core")["Version"] == scheduler_core.__version__


def test_scheduler_core_has_the_licence_of_the_repository() -> None:
    assert (ROOT / "scheduler_core" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


# ---- only the repository's own scheduler_core is installed ----


class Index(http.server.BaseHTTPRequestHandler):
    """A fake package index on which another party owns the name scheduler-core and offers a wheel of that name."""

    asked: list[str]
    wrong: Path

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path.startswith("/simple/scheduler-core"):
            page = f'<!DOCTYPE html><a href="/{self.wrong.name}">{self.wrong.name}</a>'.encode()
            self._answer(page, "text/html")
        elif self.path == f"/{self.wrong.name}":
            self._answer(self.wrong.read_bytes(), "application/zip")
        else:
            self.send_error(404)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def index(tmp_path: Path) -> Iterator[type[Index]]:
    """Run the package index and yield its handler class. The attribute `address` is the URL of the index."""
    version = scheduler_core.__version__
    wrong = tmp_path / f"scheduler_core-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wrong, "w") as archive:
        info = f"scheduler_core-{version}.dist-info"
        archive.writestr("scheduler_core/__init__.py", "raise SystemExit('not ours')\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: scheduler-core\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    handler = type("OneIndex", (Index,), {"asked": [], "wrong": wrong})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.address = f"http://127.0.0.1:{server.server_address[1]}/simple"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Create a virtual environment with the installed packages except careen and scheduler_core. Return its Python."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python3*/site-packages")
    for each in Path(scheduler_core_free_site()).iterdir():
        known = each.name.lower().startswith(("careen", "scheduler_core", "_careen", "_scheduler_core", "pip"))
        if not known and not (site / each.name).exists():
            (site / each.name).symlink_to(each)
    return python


def scheduler_core_free_site() -> str:
    import click

    return str(Path(click.__file__).parents[1])


def pip(python: Path, index: type[Index], *words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    settings |= {
        "PIP_INDEX_URL": index.address,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # type: ignore[attr-defined]
    return run([str(python), "-m", "pip", *words], cwd=cwd, env=settings)


def installed_words() -> list[str]:
    """Return the arguments with which `make install` calls `pip install` for this repository, without the versions of
    the lock: the index has no other packages, and those that are installed may have other versions.
    """
    (line,) = re.findall(r"-m pip install (--quiet .*--editable .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    without_lock, found = re.subn(r"--constraint \S+ ", "", line)
    assert found == 1
    return [word for word in without_lock.split() if word != "--quiet"]


def test_make_install_uses_the_local_scheduler_core(index: type[Index], empty: Path, tmp_path: Path) -> None:
    copy = tmp_path / "source"
    shutil.copytree(
        ROOT,
        copy,
        ignore=lambda folder, names: (
            {each for each in names if each in {".git", ".venv", ".cache", "tests", "__pycache__"}}
            | (set(names) if Path(folder).name == ".cache" else set())
        ),
    )
    words = installed_words()
    until = words.index("--group")
    # The index has no build tools, so the installed ones are used.
    done = pip(empty, index, "install", "--no-build-isolation", *words[:until], cwd=copy)
    assert done.returncode == 0, done.stdout + done.stderr
    said = run(
        [str(empty), "-c", "import scheduler_core, careen, drydock; print(scheduler_core.__file__)"], cwd=tmp_path
    )
    assert said.stdout.strip() == str(copy / "scheduler_core" / "__init__.py"), said.stderr
    assert index.asked == []


def test_pip_asks_the_index_for_scheduler_core_if_it_installs_only_careen(index: type[Index], empty: Path) -> None:
    """`make install` would ask the index too if the Makefile listed only careen."""
    done = pip(empty, index, "install", "--no-build-isolation", "--dry-run", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(path.startswith("/simple/scheduler-core") for path in index.asked)


def test_installing_both_wheels_together_needs_no_package_index(
    dist: Path, index: type[Index], empty: Path, tmp_path: Path
) -> None:
    done = pip(empty, index, "install", *(str(wheel(dist, name)) for name in NAMES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert index.asked == []
    said = run([str(empty), "-m", "scheduler_core", "--version"], cwd=tmp_path)
    assert said.stdout == f"scheduler_core, version {scheduler_core.__version__}\n"


def test_the_requirements_lock_does_not_list_the_repositorys_own_packages() -> None:
    for kind in ("run", "build"):
        said = run([sys.executable, str(ROOT / "mk" / "lock_input.py"), kind])
        assert said.returncode == 0, said.stderr
        assert said.stdout.splitlines()
        assert not re.search(r"scheduler.core|careen", said.stdout)
    assert "pyproject.toml" not in re.findall(r"\$\(COMPILE\).*", (ROOT / "mk" / "image.mk").read_text())[-1]
