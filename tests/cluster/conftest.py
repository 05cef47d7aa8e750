"""Fixtures of the tests with simulated nodes and agents (class `Story`). The tests share one control plane. Each test
starts with an empty cluster and empties the cluster at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.harness import guards
from tests.cluster.harness.guards import Guarded, guarded
from tests.cluster.harness.machines.control_plane import JOURNAL_POLICY, ControlPlane, a_control_plane
from tests.cluster.harness.machines.prometheus import Prometheus
from tests.cluster.harness.machines.schedulers import Schedulers
from tests.cluster.harness.measures.drains import sweep
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import SHOP


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


@pytest.fixture
def schedulers(plane: ControlPlane, tmp_path: Path) -> Iterator[Schedulers]:
    plane.check()
    schedulers = Schedulers(plane, tmp_path)
    yield schedulers
    schedulers.close()
    sweep(plane.admin, SHOP)


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


@pytest.fixture(autouse=True)
def attempts(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """Report the attempts of each test to the summary, also from a worker of pytest-xdist."""
    guards.ATTEMPTS.clear()
    yield
    if guards.ATTEMPTS:
        record_property("attempts", dict(guards.ATTEMPTS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many requests the tests tried, and which policy stopped how many."""
    found: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                found.update(dict(report.user_properties).get("attempts", {}))
    if found:
        terminalreporter.section("attempts against the policies")
        rows = [
            ("tried", found.total()),
            *((f"stopped by {name}", n) for name, n in found.most_common() if name != guards.LET_IN),
        ]
        for name, number in [*rows, (guards.LET_IN, found[guards.LET_IN])]:
            terminalreporter.write_line(f"{number:7,}  {name}")


@pytest.fixture
def prometheus(plane: ControlPlane, tmp_path: Path) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path / "prometheus", guardian=plane.guardian)
    yield prometheus
    prometheus.close()
