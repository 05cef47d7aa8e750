"""Tests the default selector, which joins the selectors of a pod's services and of its controller. Default spread
constraints count the pods that match the default selector."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.framework.scoring.spread_counts import default_selector
from scheduler_core.model.labels import LabelSelector, Requirement
from scheduler_core.model.pod import OwnerReference, Pod
from scheduler_core.model.selecting_owner import SelectingOwner
from scheduler_core.snapshot.cluster_objects import ClusterObjects
from scheduler_core.snapshot.snapshot import Snapshot

LABELS = st.dictionaries(st.sampled_from(["app", "tier", "zone"]), st.sampled_from(["a", "b"]), max_size=3)
NAMES = st.sampled_from(["one", "two", "three"])


def a_service(number: int, labels: dict[str, str]) -> SelectingOwner:
    return SelectingOwner(
        kind="Service",
        api_version="v1",
        namespace="shop",
        name=f"s{number}",
        selector=LabelSelector(()),
        selects_by_labels=tuple(labels.items()),
    )


def a_replica_set(name: str) -> SelectingOwner:
    selector = LabelSelector((Requirement("app", "In", (name,)),))
    return SelectingOwner(kind="ReplicaSet", api_version="apps/v1", namespace="shop", name=name, selector=selector)


@given(st.lists(LABELS, max_size=5), st.sets(NAMES), LABELS, st.none() | NAMES)
def test_the_default_selector_joins_the_selectors_of_services_and_controller(
    services: list[dict[str, str]], sets: set[str], labels: dict[str, str], owned_by: str | None
) -> None:
    owners = (*(a_service(*each) for each in enumerate(services)), *map(a_replica_set, sorted(sets)))
    snapshot = Snapshot.of([], objects=ClusterObjects(owners={"shop": owners, "other": owners[:1]}))
    owner = OwnerReference("apps/v1", "ReplicaSet", owned_by, "u") if owned_by else None
    found = default_selector(snapshot, Pod(name="p", namespace="shop", labels=labels, owner=owner))
    matching = [each for each in services if each.items() <= labels.items()]
    pairs = {key: value for each in matching for key, value in each.items()}
    wanted = [Requirement(key, "In", (value,)) for key, value in sorted(pairs.items())]
    if owned_by in sets:
        wanted.append(Requirement("app", "In", (owned_by or "",)))
    assert list(found.requirements or ()) == wanted


def test_a_controller_of_another_api_group_adds_no_selector() -> None:
    owners = (a_replica_set("one"),)
    snapshot = Snapshot.of([], objects=ClusterObjects(owners={"shop": owners}))
    foreign = OwnerReference("example.com/v1", "ReplicaSet", "one", "u")
    assert not default_selector(snapshot, Pod(name="p", namespace="shop", owner=foreign)).requirements
