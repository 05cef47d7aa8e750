"""Whatever a person writes into a manifest, the answer is a value or an error that names the field."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given

from scheduler_core import Scheduler, load_objects, node_from_manifest, pod_from_manifest, workload_from_manifest
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import budget_from_manifest
from tests.scheduler_core.model.manifests.damaged_manifests import (
    ALL,
    BUDGET,
    LISTS,
    NODE,
    OTHERS,
    POD,
    WORKLOADS,
    damaged,
)

READERS: dict[str, Any] = {
    "Pod": pod_from_manifest,
    "Node": node_from_manifest,
    "PodDisruptionBudget": budget_from_manifest,
    **{each["kind"]: workload_from_manifest for each in WORKLOADS},
}


@pytest.mark.parametrize("whole", ALL, ids=lambda whole: whole["kind"])
def test_the_undamaged_manifest_of_each_kind_is_read_and_scheduled(whole: Any) -> None:
    if whole["kind"] in READERS:
        assert READERS[whole["kind"]](whole)
    if whole not in WORKLOADS or whole["kind"] in ("ReplicaSet", "StatefulSet", "Job"):
        assert load_objects([whole]).problems == ()


@given(damaged((POD, NODE, BUDGET, *WORKLOADS)))
def test_a_damaged_manifest_is_read_or_refused_with_its_field(manifest: Any) -> None:
    for read in {*READERS.values()}:
        for strict in (True, False):
            with suppress(ManifestError):
                read(manifest, strict=strict)


@given(damaged((POD, *OTHERS)), damaged((NODE, *OTHERS, *LISTS)))
def test_a_pod_is_scheduled_in_whatever_could_be_read(first: Any, second: Any) -> None:
    loaded = load_objects([NODE, POD, *OTHERS, first, second])
    for problem in loaded.problems:
        assert problem.problem
    for pod in (*loaded.pending, *loaded.placed_pods):
        Scheduler().schedule(loaded, pod)


def test_half_of_a_surrogate_pair_is_refused_with_its_place_in_text_that_can_be_printed() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p\ud800"}, "spec": {"nodeSelector": {"zone": "\udfff"}}}
    with pytest.raises(ManifestError, match=r"Pod p\\ud800: metadata.name: is no valid Unicode text") as refused:
        pod_from_manifest(
            {
                **pod,
                "spec": {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchFields": [{"key": "\udfff"}]}]
                            }
                        }
                    }
                },
            }
        )
    assert str(refused.value).encode()


def test_items_that_are_no_list_are_a_problem_of_their_list() -> None:
    items: Any = {"kind": "PodList", "items": 7}
    assert [str(each) for each in load_objects([items]).problems] == [
        "object without a name: items: expected a list of objects, got a int"
    ]
