"""Tests the golden cases, which are stored with the results of kube-scheduler's own code. The cases must reach every
plugin, every reason and every argument, and scheduler_core must give the same results as kube-scheduler's code."""

from __future__ import annotations

import collections
import functools
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import judges
from tests.oracle.casegen.pointed import TOPICS
from tests.oracle.comparison import differences, first_difference
from tests.oracle.goldens import traits_of

GOLDENS = Path(__file__).parents[1] / "goldens"

UU, U = "UnschedulableAndUnresolvable", "Unschedulable"
REFUSALS = (  # every text with which a default plugin of 1.36 refuses a pod, in plugin order
    ("preenqueue", "SchedulingGates", UU, "waiting for scheduling gates: …"),
    ("filter", "NodeUnschedulable", UU, "node(s) were unschedulable"),
    ("filter", "NodeName", UU, "node(s) didn't match the requested node name"),
    ("filter", "TaintToleration", UU, "node(s) had untolerated taint(s)"),
    ("prefilter", "NodeAffinity", UU, "pod affinity terms conflict"),
    ("filter", None, UU, "node(s) didn't satisfy plugin(s) …"),
    ("filter", "NodeAffinity", UU, "node(s) didn't match scheduler-enforced node affinity"),
    ("filter", "NodeAffinity", UU, "node(s) didn't match Pod's node affinity/selector"),
    ("filter", "NodePorts", U, "node(s) didn't have free ports for the requested pod ports"),
    ("filter", "NodeResourcesFit", U, "Too many pods"),
    ("filter", "NodeResourcesFit", UU, "Too many pods"),
    ("filter", "NodeResourcesFit", U, "Insufficient cpu"),
    ("filter", "NodeResourcesFit", UU, "Insufficient cpu"),
    ("filter", "NodeResourcesFit", U, "Insufficient memory"),
    ("filter", "NodeResourcesFit", UU, "Insufficient memory"),
    ("filter", "NodeResourcesFit", U, "Insufficient ephemeral-storage"),
    ("filter", "NodeResourcesFit", UU, "Insufficient ephemeral-storage"),
    ("filter", "NodeResourcesFit", U, "Insufficient example.com/gpu"),
    ("filter", "NodeResourcesFit", UU, "Insufficient example.com/gpu"),
    ("filter", "NodeResourcesFit", UU, "Insufficient hugepages-2Mi"),
    ("filter", "NodeResourcesFit", UU, "Insufficient attachable-volumes-x"),
    ("filter", "NodeResourcesFit", UU, "Insufficient batch.kubernetes.io/slot"),
    ("prefilter", "VolumeRestrictions", UU, 'persistentvolumeclaim "…" not found'),
    ("filter", "VolumeRestrictions", U, "node(s) had no available disk"),
    (
        "filter",
        "VolumeRestrictions",
        U,
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        ),
    ),
    ("filter", "NodeVolumeLimits", U, "node(s) exceed max volume count"),
    ("filter", "NodeVolumeLimits", UU, 'looking up PVC … persistentvolumeclaim "…" not found'),
    ("prefilter", "VolumeBinding", UU, "pod has unbound immediate PersistentVolumeClaims"),
    ("prefilter", "VolumeBinding", UU, 'persistentvolumeclaim "…" is being deleted'),
    ("prefilter", "VolumeBinding", UU, 'persistentvolumeclaim "…" bound to non-existent persistentvolume "…"'),
    (
        "prefilter",
        "VolumeBinding",
        UU,
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "…"',
    ),
    ("prefilter", "VolumeBinding", UU, "PVC … was not created for pod … (pod is not owner)"),
    ("filter", "VolumeBinding", UU, "node(s) didn't match PersistentVolume's node affinity"),
    ("filter", "VolumeBinding", UU, "node(s) didn't find available persistent volumes to bind"),
    ("filter", "VolumeBinding", UU, "node(s) did not have enough free storage"),
    ("filter", "VolumeBinding", UU, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    ("filter", "VolumeZone", UU, "node(s) had no available volume zone"),
    ("prefilter", "VolumeZone", UU, "PersistentVolumeClaim had no name"),
    ("prefilter", "VolumeZone", UU, "PersistentVolumeClaim had no pv name and storageClass name"),
    ("prefilter", "VolumeZone", UU, 'VolumeBindingMode not set for StorageClass "…"'),
    ("prefilter", "VolumeZone", UU, "PersistentVolume had no name"),
    ("prefilter", "VolumeZone", UU, 'persistentvolume "…" not found'),
    ("prefilter", "VolumeZone", UU, 'storageclass.storage.k8s.io "…" not found'),
    ("filter", "PodTopologySpread", U, "node(s) didn't match pod topology spread constraints"),
    (
        "filter",
        "PodTopologySpread",
        UU,
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ),
    ("filter", "InterPodAffinity", UU, "node(s) didn't match pod affinity rules"),
    ("filter", "InterPodAffinity", U, "node(s) didn't match pod anti-affinity rules"),
    ("filter", "InterPodAffinity", U, "node(s) didn't satisfy existing pods anti-affinity rules"),
    # `resourceclaim in use` cannot be reached: in 1.36 every claim can be reserved (CanBeReserved is always true).
    ("prefilter", "DynamicResources", UU, 'could not find ResourceClaim "…"'),
    ("prefilter", "DynamicResources", UU, 'resourceclaim "…" is being deleted'),
    ("prefilter", "DynamicResources", UU, 'pod "…": ResourceClaim not created yet'),
    ("prefilter", "DynamicResources", UU, "ResourceClaim … was not created for Pod … (Pod is not owner)"),
    ("prefilter", "DynamicResources", UU, "request d: device class nobody does not exist"),
    ("filter", "DynamicResources", UU, "resourceclaim not available on the node"),
    ("filter", "NodeDeclaredFeatures", UU, "node(s) didn't match Pod's required features"),
)
SENTENCES = (
    "no new claims to deallocate, preemption:",
    "still not schedulable, preemption: 0/nod",
    "deallocation of ResourceClaim completed,",
    "preemption: not eligible due to preempti",
    "not found",
)
SCORERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
ARGUMENTS = (
    "DefaultPreemption.minCandidateNodesAbsolute",
    "DefaultPreemption.minCandidateNodesPercentage",
    "InterPodAffinity.hardPodAffinityWeight",
    "InterPodAffinity.ignorePreferredTermsOfExistingPods",
    "NodeAffinity.addedAffinity",
    "NodeResourcesBalancedAllocation.resources",
    "NodeResourcesFit.ignoredResources",
    "NodeResourcesFit.ignoredResourceGroups",
    "NodeResourcesFit.scoringStrategy",
    "PodTopologySpread.defaultConstraints",
    "PodTopologySpread.defaultingType",
    "VolumeBinding.bindTimeoutSeconds",
)
PLUGIN_SETS = (
    "multiPoint.enabled",
    "multiPoint.disabled",
    "score.enabled",
    "score.disabled",
    "filter.enabled",
    "filter.disabled",
    "postFilter.disabled",
)


def read(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDENS / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@functools.cache
def traits() -> collections.Counter[str]:
    """Returns, for each feature, the number of golden cases with this feature."""
    answers = {one["id"]: one["answers"] for one in read("small-answers")}
    return collections.Counter(trait for one in read("small") for trait in set(traits_of(one, answers[one["id"]])))


@pytest.mark.parametrize(("point", "plugin", "code", "text"), REFUSALS)
def test_every_reason_of_every_plugin_occurs_in_the_golden_cases(
    point: str, plugin: str | None, code: str, text: str
) -> None:
    assert traits()[f"{point} {plugin} {code} {text}"] >= 1


def test_every_refusal_in_the_golden_cases_is_in_the_table_of_reasons() -> None:
    known = {f"{point} {plugin} {code} {text}" for point, plugin, code, text in REFUSALS}
    seen = {trait for trait in traits() if trait.startswith(("filter", "prefilter", "preenqueue"))}
    unknown = {trait for trait in seen - known if " Insufficient " not in trait}
    assert unknown <= {f'prefilter VolumeZone {UU} persistentvolumeclaim "…" not found'}


@pytest.mark.parametrize("plugin", SCORERS)
def test_every_score_plugin_gives_a_score_in_some_golden_case(plugin: str) -> None:
    assert traits()[f"score {plugin}"] >= 20


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_plugin_argument_is_set_in_some_golden_case(argument: str) -> None:
    assert traits()[f"argument {argument}"] >= 3


@pytest.mark.parametrize("point", PLUGIN_SETS)
def test_every_way_to_enable_or_disable_plugins_occurs_in_the_golden_cases(point: str) -> None:
    assert traits()[f"plugins {point}"] >= 3


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_form_of_the_unschedulable_message_occurs_in_the_golden_cases(sentence: str) -> None:
    assert any(trait.startswith("sentence " + sentence) for trait in traits())


def test_the_golden_cases_have_preemptions_with_one_best_node_and_with_several() -> None:
    assert traits()["preemption with one possible outcome"] >= 40
    assert traits()["preemption with several possible outcomes"] >= 3


def test_clusters_of_more_than_a_hundred_nodes_occur_in_the_golden_cases() -> None:
    sizes = sorted(sum(o["kind"] == "Node" for o in one["objects"]) for one in read("large"))
    assert sizes[0] > 100
    assert sizes[-1] >= 2000


@pytest.mark.parametrize("topic", TOPICS)
def test_the_golden_cases_of_each_topic_have_pods_with_and_without_a_fitting_node(topic: str) -> None:
    answers = [
        answer
        for one in read("pointed-answers")
        if one["id"].split("-")[1] == topic
        for answer in one["answers"].values()
    ]
    assert len(answers) == 36
    assert sum("best" in answer for answer in answers) >= 6
    assert sum("best" not in answer for answer in answers) >= 3


@pytest.mark.parametrize("name", ["small", "large", "pointed"])
def test_scheduler_core_decides_every_golden_case_as_kube_scheduler_does(name: str) -> None:
    with gzip.open(GOLDENS / f"{name}.jsonl.gz") as questions:
        ran = subprocess.run(
            judges.OURS, input=questions.read(), capture_output=True, check=False, cwd=GOLDENS.parents[1]
        )
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    got = {answer["id"]: answer["answers"] for answer in map(json.loads, ran.stdout.splitlines())}
    departures = [
        f"{one['id']} {pod}: {field}: {first_difference(want, got.get(one['id'], {}).get(pod, {}), field)}"
        for one in read(f"{name}-answers")
        for pod, want in one["answers"].items()
        for field in differences(want, got.get(one["id"], {}).get(pod, {}))
    ]
    assert not departures, f"{len(departures)} differences, the first ones:\n" + "\n".join(departures[:10])


def test_the_comparison_detects_changed_scores_reasons_and_victims() -> None:
    want: dict[str, Any] = {
        "nodes": {"a": {"code": U, "plugin": "NodePorts", "reasons": ["x"]}},
        "scores": {"a": {"total": 1, "plugins": {"P": 1}}},
        "preemptions": [{"node": "a", "victims": ["default/v"]}],
    }
    ours = {**want, "preemption": {"node": "a", "victims": ["default/v"]}}
    assert differences(want, ours) == []
    assert differences(want, {**ours, "scores": {"a": {"total": 2, "plugins": {"P": 2}}}}) == ["scores"]
    assert differences(want, {**ours, "nodes": {"a": {"code": U, "plugin": "NodePorts", "reasons": []}}}) == ["nodes"]
    assert differences(want, {**ours, "preemption": {"node": "a", "victims": []}}) == ["preemption"]
    assert differences({"error": "…"}, ours) == ["error"]


def test_the_comparison_ignores_only_the_order_of_extended_resources() -> None:
    def answer(*reasons: str) -> dict[str, Any]:
        return {"nodes": {"a": {"code": U, "plugin": "NodeResourcesFit", "reasons": list(reasons)}}}

    assert (
        differences(
            answer("Insufficient cpu", "Insufficient b/x", "Insufficient a/x"),
            answer("Insufficient cpu", "Insufficient a/x", "Insufficient b/x"),
        )
        == []
    )
    assert differences(
        answer("Insufficient cpu", "Insufficient a/x"), answer("Insufficient a/x", "Insufficient cpu")
    ) == ["nodes"]


def test_a_case_depends_only_on_its_seed_and_number() -> None:
    command = [sys.executable, "-m", "tests.oracle.generate", "5", "3"]
    first, again = (
        subprocess.run(command, capture_output=True, check=True, cwd=GOLDENS.parents[1]).stdout for _ in range(2)
    )
    assert first == again
    assert len({json.loads(line)["id"] for line in first.splitlines()}) == 3
