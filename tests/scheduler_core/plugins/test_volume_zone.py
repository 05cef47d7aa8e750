"""Tests VolumeZone, which checks the zone and region labels of bound volumes."""

from typing import Any

import pytest

from scheduler_core.framework.verdict import unresolvable
from scheduler_core.plugins.volume_zone import VolumeZone
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import SKIPPED, ask, claim, refused, storage_class, using, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
PLUGIN = VolumeZone()
POD = a_pod().with_field("spec.volumes", using("data")).manifest


def node(name: str, **labels: str) -> dict[str, Any]:
    return (
        a_node(name)
        .with_labels(
            {{"zone": ZONE, "region": REGION, "old_zone": OLD_ZONE}[key]: value for key, value in labels.items()}
        )
        .manifest
    )


def nodes_refused(labels: dict[str, str], *nodes: dict[str, Any]) -> set[str]:
    verdicts = ask(PLUGIN, POD, claim(bound_to="pv"), volume(labels=labels), *nodes)
    assert set(refused(verdicts).values()) <= {("node(s) had no available volume zone",)}
    return set(refused(verdicts))


@pytest.mark.parametrize(
    ("labels", "nodes", "expected"),
    [
        pytest.param(
            {ZONE: "a"}, (node("a", zone="a"), node("b", zone="b")), {"b"}, id="a node in another zone is refused"
        ),
        pytest.param(
            {ZONE: "a__b"},
            (node("a", zone="a"), node("b", zone="b"), node("c", zone="c")),
            {"c"},
            id="a volume in two zones accepts nodes of both zones",
        ),
        pytest.param({ZONE: "a"}, (node("bare"),), set(), id="a node without any zone label is never refused"),
        pytest.param({ZONE: "a"}, (node("r", region="r"),), {"r"}, id="a node with a region but no zone is refused"),
        pytest.param(
            {ZONE: "a", REGION: "r"},
            (node("right", zone="a", region="r"), node("wrong", zone="a", region="s")),
            {"wrong"},
            id="a node in another region is refused",
        ),
        pytest.param(
            {OLD_ZONE: "a"},
            (node("new", zone="a"), node("old", old_zone="a"), node("other", zone="b")),
            {"other"},
            id="a volume with the beta label accepts a node with the current label",
        ),
        pytest.param(
            {ZONE: "a"},
            (node("old", old_zone="a"),),
            {"old"},
            id="a volume with the current label refuses a node that has only the beta label",
        ),
    ],
)
def test_a_node_must_be_in_the_volumes_zone(
    labels: dict[str, str], nodes: tuple[dict[str, Any], ...], expected: set[str]
) -> None:
    assert nodes_refused(labels, *nodes) == expected


@pytest.mark.parametrize("labels", [{}, {"other": "x"}, {ZONE: ""}, {ZONE: "a__"}])
def test_a_volume_without_zone_label_refuses_no_node(labels: dict[str, str]) -> None:
    assert ask(PLUGIN, POD, claim(bound_to="pv"), volume(labels=labels), node("a", zone="a")) == SKIPPED


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ((), 'persistentvolumeclaim "data" not found'),
        ((claim(bound_to="gone"),), 'persistentvolume "gone" not found'),
        ((claim(storage_class=None),), "PersistentVolumeClaim had no pv name and storageClass name"),
        ((claim(storage_class="nowhere"),), 'storageclass.storage.k8s.io "nowhere" not found'),
        ((claim(), storage_class(mode=None)), 'VolumeBindingMode not set for StorageClass "wait"'),
        ((claim(), storage_class(mode="Immediate")), "PersistentVolume had no name"),
    ],
)
def test_volume_zone_refuses_a_pod_with_an_unusable_claim(objects: tuple[dict[str, Any], ...], reason: str) -> None:
    assert ask(PLUGIN, POD, node("a"), *objects) == unresolvable(reason)


def test_volume_zone_refuses_a_pod_whose_volume_names_no_claim() -> None:
    assert ask(PLUGIN, a_pod().with_field("spec.volumes", using("")).manifest, node("a")) == unresolvable(
        "PersistentVolumeClaim had no name"
    )


def test_a_claim_that_waits_for_its_first_consumer_refuses_no_node() -> None:
    assert ask(PLUGIN, POD, claim(), storage_class(), node("a")) == SKIPPED
