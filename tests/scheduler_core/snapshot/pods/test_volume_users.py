"""Tests how a snapshot counts the pods that use volumes. The counts are updated with each change of the snapshot, and
must equal a fresh count."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.node import Node
from scheduler_core.model.pod import LegacyDisk, Pod, PodSpec, PodVolume
from scheduler_core.snapshot.pods.volume_users import VOLUME_USERS, VolumeUsers
from scheduler_core.snapshot.snapshot import Snapshot

NODES = [Node(name=name) for name in ("n0", "n1")]
DISK = PodVolume(name="d", legacy_disk=LegacyDisk(kind="rbd", identity="i"))
SPECS = {
    "plain": PodSpec(volumes=(PodVolume(name="e", kind="emptyDir"),)),
    "claim": PodSpec(volumes=(PodVolume(name="c", claim_name="data"),)),
    "twice": PodSpec(volumes=(PodVolume(name="c", claim_name="data"), PodVolume(name="d", claim_name="data"))),
    "ephemeral": PodSpec(volumes=(PodVolume(name="s", ephemeral=True),)),
    "disk": PodSpec(volumes=(DISK,)),
}


def a_pod(name: str, kind: str, node: str = "") -> Pod:
    return Pod(name=name, uid=name, spec=SPECS[kind], node_name=node)


def readable(users: VolumeUsers) -> tuple[dict[int, set[str]], dict[str, int]]:
    return {row: {pod.name for pod in pods} for row, pods in users.by_row.items() if pods}, {
        key: count for key, count in users.uses.items() if count
    }


def test_volume_users_are_the_pods_with_claims_or_disks() -> None:
    pods = [a_pod(f"{kind}-{node}", kind, node) for kind in SPECS for node in ("n0", "n1")]
    rows, uses = readable(Snapshot.of(NODES, pods).tally(VOLUME_USERS))
    assert rows == {
        0: {"claim-n0", "twice-n0", "ephemeral-n0", "disk-n0"},
        1: {"claim-n1", "twice-n1", "ephemeral-n1", "disk-n1"},
    }
    assert uses == {"default/data": 6}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(SPECS)), st.sampled_from(["n0", "n1"])), max_size=12
    )
)
def test_an_updated_count_of_volume_users_equals_a_fresh_count(steps: list[tuple[str, str, str]]) -> None:
    snapshot, there = Snapshot.of(NODES), {}
    snapshot.tally(VOLUME_USERS)
    for name, kind, node in steps:
        if name in there:
            snapshot = snapshot.without_pod(f"default/{name}")
            del there[name]
        else:
            snapshot = snapshot.with_pod_placed(a_pod(name, kind), node)
            there[name] = a_pod(name, kind, node)
        carried = readable(snapshot.tally(VOLUME_USERS))
        assert carried == readable(Snapshot.of(NODES, there.values()).tally(VOLUME_USERS))
