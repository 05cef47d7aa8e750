"""One control plane for all stories; each story finds an empty cluster and leaves one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.processes import Guardian
from tests.cluster.harness.prometheus import Prometheus
from tests.cluster.harness.story import Story


@pytest.fixture(scope="session")
def guardian() -> Iterator[Guardian]:
    guardian = Guardian()
    yield guardian
    guardian.close()


@pytest.fixture(scope="session")
def plane(guardian: Guardian) -> Iterator[ControlPlane]:
    # Not pytest's tmp_path: etcd's files are large, and nobody reads them afterwards.
    folder = Path(tempfile.mkdtemp(prefix="careen-cluster-"))
    plane = ControlPlane(folder, guardian=guardian)
    yield plane
    plane.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def story(plane: ControlPlane, tmp_path: Path) -> Iterator[Story]:
    plane.check()
    story = Story(plane, tmp_path)
    yield story
    story.close()
    story.sweep()


@pytest.fixture
def prometheus(guardian: Guardian, tmp_path: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path / "prometheus", guardian=guardian)
    yield prometheus
    prometheus.close()
