"""Tests which evicted pods are replaced, and when their replacements appear."""

from __future__ import annotations

import pytest

from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of, replacement_of


def owned_by(kind: str) -> Pod:
    return Pod(
        name="p-0",
        namespace="shop",
        uid="u1",
        labels={"a": "b"},
        owner=OwnerReference("apps/v1", kind, "p"),
        node_name="n1",
        phase="Running",
        is_ready=True,
        start_time=1.0,
    )


@pytest.mark.parametrize(
    ("pod", "recreation"),
    [
        pytest.param(owned_by("ReplicaSet"), Recreation.AT_ONCE, id="a ReplicaSet replaces a terminating pod at once"),
        pytest.param(
            owned_by("ReplicationController"),
            Recreation.AT_ONCE,
            id="a ReplicationController replaces a terminating pod at once",
        ),
        pytest.param(owned_by("Job"), Recreation.MUCH_LATER, id="a Job replaces a pod after its back-off"),
        pytest.param(
            owned_by("CloneSet"), Recreation.AT_ONCE, id="an unknown controller is assumed to replace the pod at once"
        ),
        pytest.param(
            owned_by("StatefulSet"),
            Recreation.AFTER_IT_IS_GONE,
            id="a StatefulSet replaces a pod once the pod's name is free",
        ),
        pytest.param(owned_by("DaemonSet"), Recreation.STAYS, id="a DaemonSet's pod stays"),
        pytest.param(owned_by("Node"), Recreation.STAYS, id="a static pod stays"),
        pytest.param(Pod(name="p", is_mirror=True), Recreation.STAYS, id="a mirror pod stays"),
        pytest.param(Pod(name="p"), Recreation.NEVER, id="a bare pod is lost"),
    ],
)
def test_the_controller_decides_whether_a_pod_is_recreated(pod: Pod, recreation: Recreation) -> None:
    assert recreation_of(pod) is recreation


def test_a_replacement_keeps_labels_and_spec_but_not_status() -> None:
    old = owned_by("ReplicaSet")
    new = replacement_of(old)
    assert (new.labels, new.spec, new.owner, new.namespace) == (old.labels, old.spec, old.owner, old.namespace)
    assert (new.node_name, new.phase, new.is_ready, new.start_time) == ("", "Pending", False, None)
    assert new.uid != old.uid


def test_only_the_replacement_of_a_statefulset_pod_keeps_the_name() -> None:
    assert replacement_of(owned_by("StatefulSet")).name == "p-0"
    assert replacement_of(owned_by("ReplicaSet")).name != "p-0"
