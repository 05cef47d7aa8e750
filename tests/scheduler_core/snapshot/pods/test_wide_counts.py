"""Counts are kept in 16 bits, and in more before they need more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.labels import NOTHING, LabelSelector, Requirement
from scheduler_core.model.node import HOSTNAME_LABEL, Node
from scheduler_core.model.pod import Pod, PodAffinity, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm
from scheduler_core.snapshot.pods.affinity_groups import IncomingPod
from scheduler_core.snapshot.pods.placements import Tally
from scheduler_core.snapshot.pods.pod_classes import PodQuery
from scheduler_core.snapshot.pods.tallies import DomainTally, PullTally, QueryTally
from scheduler_core.snapshot.snapshot import Snapshot

WEB = LabelSelector((Requirement("app", "In", ("web",)),))
QUERY = PodQuery(((None, WEB),))
INCOMING = IncomingPod("default", (), (("app", "web"),))
NODES = [Node(name=name, labels={HOSTNAME_LABEL: name}) for name in ("a", "b")]
SMALL = 16_384
LABELS = {"app": "web"}


def pulling(weight: int) -> PodSpec:
    term = PodAffinityTerm(
        topology_key=HOSTNAME_LABEL, selector=WEB, namespaces=frozenset({"default"}), namespace_selector=NOTHING
    )
    both = (PodAffinity(preferred=(WeightedPodAffinityTerm(abs(weight), term),)), PodAffinity())
    affinity, anti_affinity = both if weight > 0 else both[::-1]
    return PodSpec(pod_affinity=affinity, pod_anti_affinity=anti_affinity)


def pods(prefix: str, number: int, spec: PodSpec) -> list[Pod]:
    return [Pod(name=f"{prefix}{i}", labels=LABELS, spec=spec, node_name="a") for i in range(number)]


def counted(snapshot: Snapshot, tally: Tally[Any]) -> list[Any]:
    value = snapshot.tally(tally)
    arrays = [value] if not isinstance(value, dict) else [x for p in value.values() for x in (p.weights, p.terms)]
    return [array.tolist() for array in arrays]


def follows(tally: Tally[Any], before: list[Pod], more: list[Pod]) -> list[Any]:
    """The count after the changes, which must equal a count from the beginning."""
    snapshot = Snapshot.of(NODES, before)
    snapshot.tally(tally)
    changed = snapshot.with_pods_placed((pod, "a") for pod in more)
    assert counted(changed, tally) == counted(Snapshot.of(NODES, [*before, *more]), tally)
    left = changed.without_pods(pod.key for pod in before)
    assert counted(left, tally) == counted(Snapshot.of(NODES, more), tally)
    return counted(changed, tally)


@pytest.mark.parametrize("tally", [QueryTally(QUERY), DomainTally(QUERY, HOSTNAME_LABEL)])
def test_a_count_of_pods_grows_beyond_16_bits(tally: Tally[Any]) -> None:
    found = follows(tally, pods("old", SMALL - 1, PodSpec()), pods("new", SMALL + 1, PodSpec()))
    assert found[0][0] == 2 * SMALL  # one more than 16 bits hold


@given(weight=st.sampled_from([-100, -99, 99, 100]), before=st.integers(150, 180), more=st.integers(1, 400))
def test_the_weights_of_terms_grow_beyond_16_bits(weight: int, before: int, more: int) -> None:
    spec = pulling(weight)
    weights, terms = follows(PullTally(INCOMING), pods("old", before, spec), pods("new", more, spec))
    assert (weights[0], terms[0]) == (weight * (before + more), before + more)
