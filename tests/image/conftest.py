"""Fixtures: the image, which mk/image/build builds from the Dockerfile, and a container that runs programs of the
image.

buildah runs these programs with chroot isolation, so they use the computer's network, but the files and the user of the
image.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import run

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/careen:tested"
BASE = "localhost/careen-base:debian"


@dataclass(frozen=True)
class Container:
    """A container in which a test runs several programs one after another. Each program finds the files of the earlier
    programs."""

    name: str
    config: dict[str, Any]  # OCI's: Entrypoint, Cmd, User, Env, Labels

    def run(
        self, *arguments: str, stdin: str = "", volumes: dict[Path, str] | None = None, env: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run the image as `docker run IMAGE ARGUMENTS` does. Without arguments, the entry point gets the arguments in
        CMD.
        """
        words = [*self.config["Entrypoint"], *(arguments or self.config["Cmd"])]
        return self.program(*words, stdin=stdin, volumes=volumes, env=env)

    def program(
        self, *words: str, stdin: str = "", volumes: dict[Path, str] | None = None, env: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as `docker run --entrypoint` does."""
        given = [f"--volume={outside}:{inside}:ro" for outside, inside in (volumes or {}).items()]
        settings = [f"--env={each}" for each in env]
        return buildah("run", "--isolation", "chroot", *given, *settings, self.name, "--", *words, stdin=stdin)

    def ok(self, *words: str, **how: Any) -> str:
        """Run a program that must succeed, and return its output."""
        done = self.program(*words, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def buildah(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run([str(ROOT / "mk" / "image" / "buildah"), *words], input=stdin)


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def image() -> str:
    if missing := [each for each in ("buildah", "mmdebstrap") if shutil.which(each) is None]:
        pytest.skip(f"SKIPPED: {' and '.join(missing)} not installed; on Debian: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("SKIPPED: buildah builds here as root only")
    # It downloads and compiles for minutes, without its own limit.
    done = subprocess.run(
        [str(ROOT / "mk" / "image" / "build"), IMAGE, "debian"], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, "the build failed: see above"
    return done.stdout.strip()


@pytest.fixture(scope="session")
def container(image: str) -> Iterator[Container]:
    config = json.loads(printed(buildah("inspect", "--type", "image", image)))["OCIv1"]["config"]
    name = printed(buildah("from", "--pull-never", image))
    yield Container(name, config)
    buildah("rm", name)
