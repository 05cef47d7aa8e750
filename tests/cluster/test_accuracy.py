"""Compares forecasts of varied clusters with real drains: the pods must land on the forecast nodes.

`make bench-accuracy` makes the same comparison with 30 drains for each of several setups: careen's drain, `kubectl
drain`, and careen's drain in clusters with the default configuration of kube-scheduler.
"""

from __future__ import annotations

import random

import pytest

from bench.accuracy.__main__ import table
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.measures.accuracy import Score, score
from tests.cluster.harness.measures.drains import Drainer, apply, careen_engine, sweep
from tests.cluster.harness.measures.varied import NAMESPACE, varied_cluster

pytestmark = pytest.mark.cluster

SEEDS = (21, 22)
DRAINS = 3


def test_pods_land_on_their_forecast_nodes_if_events_follow_the_forecast_order(plane: ControlPlane) -> None:
    total = Score()
    for seed in SEEDS:
        cluster = varied_cluster(seed)
        apply(plane.admin, cluster.nodes)
        apply(plane.admin, cluster.workloads)
        drainer = Drainer(plane, careen_engine())
        drainer.settle()
        for node in random.Random(seed).sample(cluster.node_names, DRAINS):
            total.add(score(drainer.drain(node)))
        sweep(plane.admin, NAMESPACE)
    print(*table([("all", total)]), *total.misses, sep="\n")
    assert total.single_in_order > 10, "too few pods moved, so this test proves nothing"
    # On a busy machine, replacements come later than forecasts assume. Such drains are left out here, and the bench
    # judges them.
    assert not [miss for miss in total.misses if miss.reason == "not explained"]
    assert total.single_equal_in_order >= 0.95 * total.single_in_order
    assert total.mean_size <= 1.5
