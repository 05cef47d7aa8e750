"""Fixtures of the tests with simulated nodes and agents (class `Story`). The tests share one control plane. Each test
starts with an empty cluster and empties the cluster at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.harness.guards import Guarded, guarded
from tests.cluster.harness.machines.control_plane import JOURNAL_POLICY, ControlPlane, a_control_plane
from tests.cluster.harness.machines.prometheus import Prometheus
from tests.cluster.harness.story import Story


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with a_control_plane(
        "cluster", lambda folder, guardian: ControlPlane(folder, guardian=guardian, audit_policy=JOURNAL_POLICY)
    ) as plane:
        yield plane


@pytest.fixture
def story(plane: ControlPlane, tmp_path: Path) -> Iterator[Story]:
    plane.check()
    story = Story(plane, tmp_path)
    yield story
    story.close()
    story.sweep()


@pytest.fixture(scope="module")
def scene(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Install the policies of manifests/admission, and yield two nodes with clients. The tests of one module share
    these nodes.
    """
    plane.check()
    story = Story(plane, tmp_path_factory.mktemp("scene"))
    with guarded(story) as found:
        yield found
    story.close()
    story.sweep()


@pytest.fixture
def prometheus(plane: ControlPlane, tmp_path: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path / "prometheus", guardian=plane.guardian)
    yield prometheus
    prometheus.close()
