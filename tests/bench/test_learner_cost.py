"""Tests the part of `python -m bench.shadow` that measures the cost of learning. The learner concludes from bindings at
which node the scheduler begins its next search."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scheduler import cluster
from bench.shadow.learner import HEADER, row
from scheduler_core.snapshot.loading import load_pages
from scheduler_core.snapshot.snapshot import Snapshot


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    cluster.write(tmp_path, nodes=request.param, seed=1)
    return load_pages([path.read_bytes() for path in sorted(tmp_path.glob("*.json"))])


@pytest.mark.parametrize("snapshot", [130], indirect=True)
def test_twenty_bindings_rule_out_some_of_the_possible_searches(snapshot: Snapshot) -> None:
    cells = dict(zip(HEADER, row(snapshot, bindings=24), strict=True))
    assert cells["NODES"] == "130"
    assert int(cells["SEARCHES, FIRST"]) > int(cells["SEARCHES, LAST 20"]) > 0
    assert int(cells["KIB KEPT, FIRST"]) > 0
    assert float(cells["MIB AT THE PEAK"]) > 0


@pytest.mark.parametrize("snapshot", [60], indirect=True)
def test_the_learner_learns_nothing_in_a_small_cluster(snapshot: Snapshot) -> None:
    cells = row(snapshot, bindings=24)
    assert cells[:3] == ["60", "0", "0"]
    assert cells[7:9] == ["0", "0"]
