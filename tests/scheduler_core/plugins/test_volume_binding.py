"""Tests VolumeBinding: nodes must reach bound volumes. Unbound claims need a volume that exists or can be
provisioned."""

from typing import Any

import pytest

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import VolumeBindingArgs, default_plugin_args
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import SKIP, SUCCESS, error, unresolvable
from scheduler_core.plugins.volume_binding import VolumeBinding, VolumePlan
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.plugins.asking import SKIPPED, ask, claim, csi_node, refused, storage_class, using, volume


def plugin(version: str = "1.36") -> VolumeBinding:
    release = KubeVersion.parse(version)
    args = default_plugin_args("VolumeBinding", release)
    assert isinstance(args, VolumeBindingArgs)
    return VolumeBinding(args, release)


PLUGIN = plugin()
POD = a_pod().with_field("spec.volumes", using("data")).manifest
TWO = a_pod().with_field("spec.volumes", using("one", "two")).manifest
A, B = a_node("a").labelled(zone="a").manifest, a_node("b").labelled(zone="b").manifest
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def nodes_refused(
    *objects: dict[str, Any], pod: dict[str, Any] = POD, by: VolumeBinding = PLUGIN
) -> dict[str, tuple[str, ...]]:
    return refused(ask(by, pod, A, B, *objects))


# ---- the pod as a whole ----

EPHEMERAL = (
    a_pod()
    .with_field("spec.volumes", [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    .manifest
)


@pytest.mark.parametrize(
    ("pod", "objects", "verdict"),
    [
        (POD, (), unresolvable('persistentvolumeclaim "data" not found')),
        (
            EPHEMERAL,
            (),
            unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-scratch"'),
        ),
        (
            EPHEMERAL,
            (claim("pod-scratch"),),
            unresolvable("PVC default/pod-scratch was not created for pod default/pod (pod is not owner)"),
        ),
        (
            POD,
            (claim(bound_to="pv", status={"phase": "Lost"}),),
            unresolvable('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
        ),
        (
            POD,
            (claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),),
            unresolvable('persistentvolumeclaim "data" is being deleted'),
        ),
        (
            POD,
            (claim(), storage_class(mode="Immediate")),
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
        ),
        (POD, (claim(storage_class="nowhere"),), unresolvable("pod has unbound immediate PersistentVolumeClaims")),
        (
            POD,
            (claim(spec={"volumeName": "pv"}), storage_class(), volume()),
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
        ),
        (POD, (claim(), storage_class(mode=None)), error('VolumeBindingMode not set for StorageClass "wait"')),
    ],
)
def test_a_claim_that_no_node_can_satisfy_refuses_the_pod(
    pod: dict[str, Any], objects: tuple[dict[str, Any], ...], verdict: Any
) -> None:
    assert ask(PLUGIN, pod, A, *objects) == verdict


def test_a_pod_without_volume_claims_is_skipped() -> None:
    assert ask(PLUGIN, a_pod().manifest, A) == SKIPPED


# ---- bound claims ----


def test_a_bound_volume_must_be_reachable_from_the_node() -> None:
    assert nodes_refused(claim(bound_to="pv"), volume(zones=("a",))) == {"b": (UNREACHABLE,)}


def test_a_bound_volume_without_affinity_is_reachable_from_every_node() -> None:
    assert nodes_refused(claim(bound_to="pv"), volume()) == {}


def test_volume_binding_until_1_32_has_another_refusal_message() -> None:
    assert nodes_refused(claim(bound_to="pv"), volume(zones=("a",)), by=plugin("1.32")) == {
        "b": ("node(s) had volume node affinity conflict",)
    }


def test_a_claim_bound_to_a_missing_volume_refuses_every_node() -> None:
    assert nodes_refused(claim(bound_to="gone")) == {"a": (GONE,), "b": (GONE,)}


def test_a_volumes_affinity_term_on_metadata_name_never_matches() -> None:
    # The real check hands over labels alone.
    local = volume(
        spec={
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
                    ]
                }
            }
        }
    )
    assert set(nodes_refused(claim(bound_to="pv"), local)) == {"a", "b"}


def test_an_in_tree_disk_uses_the_drivers_topology_label_once_the_node_has_migrated() -> None:
    disk = volume(
        zones=(), spec={"awsElasticBlockStore": {"volumeID": "vol-1"}}, labels={"topology.kubernetes.io/zone": "eu-1a"}
    )
    migrated = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}}
    nodes = [
        a_node("there").with_labels({"topology.ebs.csi.aws.com/zone": "eu-1a"}).manifest,
        a_node("elsewhere").with_labels({"topology.ebs.csi.aws.com/zone": "eu-1b"}).manifest,
        a_node("unmigrated").manifest,
    ]
    verdicts = ask(
        PLUGIN,
        POD,
        claim(bound_to="pv"),
        disk,
        *nodes,
        csi_node("there", **migrated),
        csi_node("elsewhere", **migrated),
        csi_node("unmigrated"),
    )
    assert refused(verdicts) == {"elsewhere": (UNREACHABLE,)}


# ---- claims that wait for their consumer ----


@pytest.mark.parametrize(
    ("pv", "fits"),
    [
        pytest.param(volume(), True, id="a free volume that is large enough"),
        pytest.param(volume(size="1023Mi"), False, id="a volume that is too small"),
        pytest.param(volume(storage_class="other"), False, id="a volume of another storage class"),
        pytest.param(
            volume(
                storage_class="other", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "wait"}}
            ),
            True,
            id="a volume whose beta annotation names the storage class",
        ),
        pytest.param(volume(status={"phase": "Released"}), False, id="a released volume"),
        pytest.param(volume(spec={"volumeMode": "Block"}), False, id="a volume of another volumeMode"),
        pytest.param(
            volume(spec={"accessModes": ["ReadOnlyMany"]}), False, id="a volume without the requested access mode"
        ),
        pytest.param(
            volume(spec={"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}),
            True,
            id="a volume with further access modes",
        ),
        pytest.param(
            volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False, id="a volume that is being deleted"
        ),
        pytest.param(
            volume(spec={"volumeAttributesClassName": "gold"}), False, id="a volume of another VolumeAttributesClass"
        ),
        pytest.param(
            volume(spec={"claimRef": {"namespace": "default", "name": "other"}}),
            False,
            id="a volume pre-bound to another claim",
        ),
        pytest.param(
            volume(spec={"claimRef": {"namespace": "default", "name": "data"}}, status={"phase": "Pending"}),
            True,
            id="a pending volume pre-bound to this claim by name",
        ),
        pytest.param(
            volume(spec={"claimRef": {"namespace": "default", "name": "data", "uid": "uid-data"}}),
            True,
            id="a volume pre-bound to this claim by UID",
        ),
        pytest.param(
            volume(spec={"claimRef": {"namespace": "default", "name": "data", "uid": "older"}}),
            False,
            id="a volume pre-bound to a deleted claim of the same name",
        ),
    ],
)
def test_a_volume_matches_a_claim_as_in_kubernetes(pv: dict[str, Any], fits: bool) -> None:
    assert nodes_refused(claim(), storage_class(), pv) == ({} if fits else {"a": (NO_VOLUME,), "b": (NO_VOLUME,)})


def test_a_claim_gets_only_a_volume_that_the_node_can_reach() -> None:
    assert nodes_refused(claim(), storage_class(), volume(zones=("b",))) == {"a": (NO_VOLUME,)}


def test_a_claim_with_a_pre_bound_volume_gets_no_other_volume() -> None:
    promised = volume("promised", zones=("b",), spec={"claimRef": {"namespace": "default", "name": "data"}})
    assert nodes_refused(claim(), storage_class(), promised, volume("free")) == {"a": (NO_VOLUME,)}


def test_the_selector_of_a_claim_restricts_its_volumes() -> None:
    wanting_fast = claim(spec={"selector": {"matchLabels": {"speed": "fast"}}})
    assert nodes_refused(wanting_fast, storage_class(), volume(labels={"speed": "slow"})) != {}
    assert nodes_refused(wanting_fast, storage_class(), volume(labels={"speed": "fast"})) == {}


def test_two_claims_need_two_volumes() -> None:
    claims = (claim("one"), claim("two"), storage_class())
    assert set(nodes_refused(*claims, volume(), pod=TWO)) == {"a", "b"}
    assert nodes_refused(*claims, volume("x"), volume("y"), pod=TWO) == {}


def test_before_1_34_volume_attributes_classes_were_not_compared() -> None:
    wanting = claim(spec={"volumeAttributesClassName": "gold"})
    assert nodes_refused(wanting, storage_class(), volume(), by=plugin("1.33")) == {}
    assert set(nodes_refused(wanting, storage_class(), volume())) == {"a", "b"}


# ---- volumes to be made ----

MAKER = storage_class(provisioner="csi.example")


def pool(
    zone: str | None, *, capacity: str | None = None, maximum: str | None = None, of: str = "wait"
) -> dict[str, Any]:
    topology = None if zone is None else {"matchLabels": {"zone": zone}}
    meta = {"name": f"pool-{zone}", "namespace": "default"}
    amounts = {
        key: value for key, value in (("capacity", capacity), ("maximumVolumeSize", maximum)) if value is not None
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": meta,
        "storageClassName": of,
        "nodeTopology": topology,
        **amounts,
    }


def counting(*, counts: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example"},
        "spec": {"storageCapacity": counts},
    }


def topologies(*zones: str) -> list[dict[str, Any]]:
    return [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((MAKER,), {}, id="the class allows provisioning for any node"),
        pytest.param(
            (storage_class(),),
            {"a": (NO_VOLUME,), "b": (NO_VOLUME,)},
            id="a class without provisioner provisions no volume",
        ),
        pytest.param(
            (storage_class(provisioner="csi.example", allowedTopologies=topologies("a", "c")),),
            {"b": (NO_VOLUME,)},
            id="a volume is provisioned only in the class's allowedTopologies",
        ),
        pytest.param(
            (storage_class(provisioner="csi.example", allowedTopologies=[{"matchLabelExpressions": []}]),),
            {"a": (NO_VOLUME,), "b": (NO_VOLUME,)},
            id="an empty term in allowedTopologies allows no node",
        ),
        pytest.param(
            (MAKER, counting(), pool("a", capacity="1Gi")),
            {"b": (NO_SPACE,)},
            id="a volume is provisioned where the pool has enough capacity",
        ),
        pytest.param(
            (MAKER, counting(), pool("a", capacity="1023Mi")),
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="no volume is provisioned from a pool that is too small",
        ),
        pytest.param(
            (MAKER, counting(), pool("a", capacity="9Gi", maximum="512Mi")),
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="the maximum volume size of a pool overrides its capacity",
        ),
        pytest.param(
            (MAKER, counting(), pool("a", capacity="9Gi", of="other")),
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="a pool of another storage class is ignored",
        ),
        pytest.param(
            (MAKER, counting(), pool(None, capacity="9Gi")),
            {"a": (NO_SPACE,), "b": (NO_SPACE,)},
            id="a pool that no node can reach",
        ),
        pytest.param(
            (MAKER, counting(counts=False)), {}, id="a driver that reports no capacity may provision anywhere"
        ),
    ],
)
def test_a_volume_can_be_provisioned_where_the_class_allows_it(
    objects: tuple[dict[str, Any], ...], expected: dict[str, tuple[str, ...]]
) -> None:
    assert nodes_refused(claim(), *objects) == expected


def test_a_pod_fits_only_on_the_node_that_its_claim_selected() -> None:
    chosen = claim(annotations={"volume.kubernetes.io/selected-node": "b"})
    assert nodes_refused(chosen, MAKER) == {"a": (NO_VOLUME,)}


def test_a_claim_with_a_selected_node_gets_no_existing_volume() -> None:
    chosen = claim(annotations={"volume.kubernetes.io/selected-node": "b"})
    assert set(nodes_refused(chosen, storage_class(), volume())) == {"a", "b"}


def test_reasons_about_bound_and_unbound_claims_are_joined() -> None:
    assert nodes_refused(
        claim("one", bound_to="pv"),
        volume(zones=("b",), status={"phase": "Bound"}),
        claim("two"),
        storage_class(),
        pod=TWO,
    ) == {"a": (UNREACHABLE, NO_VOLUME), "b": (NO_VOLUME,)}


# ---- after the choice ----


def reserved(*objects: dict[str, Any], node: str, pod: dict[str, Any] = POD) -> VolumePlan:
    snapshot, state = load_objects([pod, A, B, *objects]), CycleState()
    asked = snapshot.pod("default/pod")
    PLUGIN.pre_filter(state, asked, NodeList(snapshot))
    assert PLUGIN.reserve(state, asked, node) == SUCCESS
    return state.read(VolumePlan)


def test_reserving_assumes_the_smallest_volume_that_fits() -> None:
    plan = reserved(
        claim(),
        storage_class(),
        volume("large", size="9Gi"),
        volume("small"),
        volume("smaller", size="512Mi"),
        node="a",
    )
    (promised,) = plan.volumes
    assert (promised.name, promised.claim and promised.claim.name, promised.annotations) == (
        "small",
        "data",
        {"pv.kubernetes.io/bound-by-controller": "yes"},
    )
    assert plan.claims == ()


def test_the_smaller_claim_gets_its_volume_before_the_larger_claim() -> None:
    plan = reserved(
        claim("one", size="5Gi"),
        claim("two", size="1Gi"),
        storage_class(provisioner="csi.example"),
        volume(size="5Gi"),
        node="a",
        pod=TWO,
    )
    assert [pv.claim and pv.claim.name for pv in plan.volumes] == ["two"]
    assert [made.name for made in plan.claims] == ["one"]


def test_reserving_sets_the_selected_node_of_a_claim_whose_volume_must_be_provisioned() -> None:
    (chosen,) = reserved(claim(), MAKER, node="b").claims
    assert chosen.annotations["volume.kubernetes.io/selected-node"] == "b"


def test_the_volume_plan_is_empty_if_the_claim_is_already_bound() -> None:
    assert reserved(claim(bound_to="pv"), volume(), node="a") == VolumePlan()
    state = CycleState()
    PLUGIN.unreserve(state, load_objects([POD]).pod("default/pod"), "a")
    assert state.read(VolumePlan) == VolumePlan()


def test_an_assumed_volume_is_not_available_for_the_next_pod() -> None:
    snapshot = load_objects([POD, A, B, claim(), storage_class(), volume()])
    state, pod = CycleState(), snapshot.pod("default/pod")
    PLUGIN.pre_filter(state, pod, NodeList(snapshot))
    PLUGIN.reserve(state, pod, "a")
    objects = state.read(VolumePlan).applied_to(snapshot.objects)
    assert objects.volumes["pv"].claim is not None
    assert snapshot.objects.volumes["pv"].claim is None
    assert VolumePlan().applied_to(snapshot.objects) is snapshot.objects


# ---- score (1.37) ----


def scores(*objects: dict[str, Any], version: str = "1.37", pod: dict[str, Any] = POD) -> list[int]:
    asked, snapshot, state = plugin(version), load_objects([pod, A, B, *objects]), CycleState()
    nodes = NodeList(snapshot)
    asked.pre_filter(state, snapshot.pod("default/pod"), nodes)
    assert asked.pre_score(state, snapshot.pod("default/pod"), nodes) == (SUCCESS if version == "1.37" else SKIP)
    return [asked.score(state, snapshot.pod("default/pod"), node_info) for node_info in nodes]


def test_since_1_37_the_emptier_storage_gets_the_higher_score() -> None:
    assert scores(
        claim(), storage_class(), volume("x", size="2Gi", zones=("a",)), volume("y", size="4Gi", zones=("b",))
    ) == [50, 75]


def test_a_storage_pool_used_by_two_claims_is_counted_once_in_the_score() -> None:
    pools = (MAKER, counting(), pool("a", capacity="10Gi"), pool("b", capacity="4Gi"))
    assert scores(claim(), *pools) == [90, 75]
    assert scores(claim("one"), claim("two"), *pools, pod=TWO) == [80, 50]


def test_volume_binding_gives_every_node_zero_if_no_storage_capacity_is_known() -> None:
    assert scores(claim(), MAKER) == [0, 0]
    assert scores(claim(bound_to="pv"), volume()) == [0, 0]


def test_volume_binding_until_1_36_does_not_score_storage_even_if_a_profile_disables_prescore() -> None:
    objects = (claim(), storage_class(), volume("x", size="2Gi", zones=("a",)), volume("y", size="4Gi", zones=("b",)))
    assert scores(*objects, version="1.36") == [0, 0]
