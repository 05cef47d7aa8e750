"""The simulated roll-outs of `make bench-moved`: the same cluster with and without the taint, and as much certainty as there is."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.rollout import simulated
from bench.rollout.sample import NODES, nodes, sample
from careen.core import keys

ORDER = [name for name, _ in nodes()]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_pod_of_the_sample_has_a_node(seed: int) -> None:
    drawn = sample(seed)
    pods = simulated.placed(drawn, random.Random(1)).placed_pods
    apps = Counter(pod.labels["app"] for pod in pods)
    assert apps == {**{name: size.replicas for name, size in drawn.sizes.items()}, "log-shipper": NODES, "node-exporter": NODES}
    assert all(pod.node_name for pod in pods)


def test_the_taint_spares_pods_that_would_have_moved_again() -> None:
    snapshot = simulated.placed(sample(0), random.Random(1))
    tainted, plain = (simulated.repeat_moves(snapshot, ORDER, taint_key=key) for key in (keys.DEFAULT_TAINT_KEY, None))
    assert tainted < plain


def test_where_some_nodes_do_not_ask_the_taint_spares_most_second_moves() -> None:
    snapshot = simulated.placed(sample(0), random.Random(1))
    tainted, plain = (simulated.repeat_moves(snapshot, ORDER[:8], taint_key=key) for key in (keys.DEFAULT_TAINT_KEY, None))
    assert 3 * tainted < plain


def test_one_node_goes_at_a_time_in_the_given_order() -> None:
    rules = simulated.InOrder(("n2", "n0", "n1"))
    assert rules.line(["n0", "n1", "n2"], simulated.BEGINS, len) == ["n2"]
    rules.claimed("n2", simulated.BEGINS)
    assert rules.line(["n0", "n1"], simulated.BEGINS, len) == ()
    rules.released("n2", simulated.BEGINS)
    assert rules.line(["n0", "n1"], simulated.BEGINS, len) == ["n0"]


def test_a_row_has_the_means_and_how_sure_the_difference_is() -> None:
    assert simulated.row("3", [(10, 12), (11, 15), (12, 15)]) == "| 3 | 11.0 | 14.0 | -3.0 ± 1.1 |"
    assert simulated.row("3", [(10, 12)]) == "| 3 | 10.0 | 12.0 | -2.0 ± nan |"
