"""Tests the arguments of each plugin: the defaults, and refused values with their paths."""

from typing import Any

import pytest

from scheduler_core.config.fields import Section
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import (
    BalancedAllocationArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceWeight,
    ShapePoint,
    VolumeBindingArgs,
    default_plugin_args,
    read_plugin_args,
)

NOW, NEXT = KubeVersion.parse("1.36"), KubeVersion.parse("1.37")
CPU_AND_MEMORY = (ResourceWeight(name="cpu", weight=1), ResourceWeight(name="memory", weight=1))


def read(plugin: str, args: dict[str, Any], version: KubeVersion = NOW) -> tuple[object, list[str]]:
    section = Section(values=args, path="args", problems=[])
    return read_plugin_args(plugin, section, version), section.problems


@pytest.mark.parametrize(
    ("plugin", "defaults"),
    [
        ("NodeResourcesFit", NodeResourcesFitArgs(strategy="LeastAllocated", resources=CPU_AND_MEMORY)),
        ("NodeResourcesBalancedAllocation", BalancedAllocationArgs(resources=CPU_AND_MEMORY)),
        (
            "InterPodAffinity",
            InterPodAffinityArgs(hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False),
        ),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=None)),
        ("PodTopologySpread", PodTopologySpreadArgs(defaulting_type="System", default_constraints=())),
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100),
        ),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=600, shape=())),
        ("DynamicResources", DynamicResourcesArgs(filter_timeout_seconds=10.0, binding_timeout_seconds=600.0)),
        ("NodeName", None),
    ],
)
def test_a_plugin_without_configured_arguments_gets_its_defaults(plugin: str, defaults: object) -> None:
    assert default_plugin_args(plugin, NOW) == defaults


@pytest.mark.parametrize(
    ("plugin", "args", "typed"),
    [
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {"type": "MostAllocated"},
                "ignoredResources": ["example.com/fpga"],
                "ignoredResourceGroups": ["example.org"],
            },
            NodeResourcesFitArgs(
                ignored_resources=("example.com/fpga",),
                ignored_resource_groups=("example.org",),
                strategy="MostAllocated",
            ),
            id="a scoring strategy without resources gets the default resources",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": 0}, {"name": "example.com/gpu", "weight": 3}],
                }
            },
            NodeResourcesFitArgs(
                resources=(ResourceWeight(name="cpu", weight=1), ResourceWeight(name="example.com/gpu", weight=3))
            ),
            id="a resource of weight zero gets the weight one",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                    },
                }
            },
            NodeResourcesFitArgs(
                strategy="RequestedToCapacityRatio",
                shape=(ShapePoint(utilization=0, score=0), ShapePoint(utilization=100, score=10)),
            ),
            id="the points of a RequestedToCapacityRatio shape are read",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "nvidia.com/gpu"}]},
            BalancedAllocationArgs(resources=(ResourceWeight(name="nvidia.com/gpu", weight=1),)),
            id="a resource of NodeResourcesBalancedAllocation gets the weight one",
        ),
        pytest.param(
            "InterPodAffinity",
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "InterPodAffinityArgs",
                "hardPodAffinityWeight": 0,
                "ignorePreferredTermsOfExistingPods": True,
            },
            InterPodAffinityArgs(hard_pod_affinity_weight=0, ignore_preferred_terms_of_existing_pods=True),
            id="an explicit hardPodAffinityWeight of zero is kept",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            DefaultPreemptionArgs(min_candidate_nodes_percentage=0),
            id="minCandidateNodesPercentage may be zero if minCandidateNodesAbsolute is not zero",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "2m"},
            DynamicResourcesArgs(filter_timeout_seconds=0.0, binding_timeout_seconds=120.0),
            id="the timeouts of DynamicResources are read in seconds",
        ),
        pytest.param(
            "Mine",
            {"anything": [1, {"goes": True}]},
            {"anything": [1, {"goes": True}]},
            id="the arguments of an out-of-tree plugin are kept as written",
        ),
    ],
)
def test_arguments_are_read_into_typed_values(plugin: str, args: dict[str, Any], typed: object) -> None:
    assert read(plugin, args) == (typed, [])


SHAPE = {"type": "RequestedToCapacityRatio"}


@pytest.mark.parametrize(
    ("plugin", "args", "problems"),
    [
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"resources": []}},
            [
                (
                    "args.scoringStrategy.type: '' is not supported; choose one of LeastAllocated, MostAllocated, "
                    "RequestedToCapacityRatio"
                )
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            ["args.scoringStrategy.resources[0].weight: 101: resource weight of cpu not in valid range (0, 100]"],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            ["args.scoringStrategy.requestedToCapacityRatio: must be specified when type is RequestedToCapacityRatio"],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {}}},
            ["args.scoringStrategy.requestedToCapacityRatio: must be absent when type is not RequestedToCapacityRatio"],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {**SHAPE, "requestedToCapacityRatio": {"shape": []}}},
            ["args.scoringStrategy.requestedToCapacityRatio.shape: at least one point must be specified"],
        ),
        (
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    **SHAPE,
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 50, "score": 11}, {"utilization": 50, "score": -1}]
                    },
                }
            },
            [
                "args.scoringStrategy.requestedToCapacityRatio.shape[0].score: 11: not in valid range [0, 10]",
                "args.scoringStrategy.requestedToCapacityRatio.shape[1].score: -1: not in valid range [0, 10]",
                (
                    "args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: 50: values must be "
                    "sorted in increasing order"
                ),
            ],
        ),
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["example.com/gpu"]},
            ["args.ignoredResourceGroups[0]: 'example.com/gpu': resource group name can't contain '/'"],
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]},
            ["args.resources[0].weight: 2: must be 1", "args.resources[1].name: 'cpu' is listed twice"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["args.hardPodAffinityWeight: 101: not in valid range [0, 100]"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": -1},
            ["args.hardPodAffinityWeight: -1: not in valid range [0, 100]"],
        ),
        ("InterPodAffinity", {"hardPodAffinityWait": 1}, ["args.hardPodAffinityWait: unknown field"]),
        (
            "InterPodAffinity",
            {"kind": "NodeAffinityArgs"},
            ["args.kind: args for plugin InterPodAffinity must be of kind InterPodAffinityArgs, not NodeAffinityArgs"],
        ),
        (
            "InterPodAffinity",
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            [
                (
                    "args.apiVersion: the apiVersion must be kubescheduler.config.k8s.io/v1, not "
                    "kubescheduler.config.k8s.io/v1beta3"
                )
            ],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                "args.minCandidateNodesPercentage: 101: not in valid range [0, 100]",
                "args.minCandidateNodesAbsolute: -1: not in valid range [0, inf)",
            ],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            ["args.minCandidateNodesPercentage: 0: cannot be zero at the same time as minCandidateNodesAbsolute"],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "Some"},
            ["args.defaultingType: 'Some' is not supported; choose one of List, System"],
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
            ["args.defaultingType: must be List when defaultConstraints are given"],
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Never", "labelSelector": {}}
                ],
            },
            [
                "args.defaultConstraints[0].maxSkew: 0: not in valid range (0, inf)",
                "args.defaultConstraints[0].topologyKey: can not be empty",
                (
                    "args.defaultConstraints[0].whenUnsatisfiable: 'Never' is not supported; choose one of "
                    "DoNotSchedule, ScheduleAnyway"
                ),
                (
                    "args.defaultConstraints[0].labelSelector: constraint must not define a selector: it is "
                    "deduced for each pod"
                ),
            ],
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": n, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} for n in (1, 2)
                ],
            },
            ["args.defaultConstraints[1]: {zone, DoNotSchedule} is listed twice"],
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, ["args.bindTimeoutSeconds: -1: should not be a negative value"]),
        (
            "VolumeBinding",
            {"shape": [{"utilization": 0, "score": 0}]},
            [
                (
                    "args.shape: unexpected field: Kubernetes 1.36 does not score storage (feature gate "
                    "StorageCapacityScoring is off)"
                )
            ],
        ),
        (
            "DynamicResources",
            {"filterTimeout": "-1s", "bindingTimeout": "10ms"},
            ["args.filterTimeout: must be zero or positive", "args.bindingTimeout: must be at least 1 second"],
        ),
        (
            "DynamicResources",
            {"filterTimeout": "soon"},
            ["args.filterTimeout: 'soon' is not a duration; write it like 5s or 1m30s"],
        ),
    ],
)
def test_the_error_for_a_wrong_argument_begins_with_the_path_of_the_argument(
    plugin: str, args: dict[str, Any], problems: list[str]
) -> None:
    assert read(plugin, args)[1] == problems


def required(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    term: dict[str, Any] = {"matchExpressions": list(expressions)}
    if fields:
        term["matchFields"] = list(fields)
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


TERM = "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        (required({"key": "pool", "operator": "Exists"}), []),
        (required({"key": "pool", "operator": "In", "values": ["a", ""]}), []),
        (required({"key": "cores", "operator": "Gt", "values": ["-3"]}), []),
        (
            required({"key": "-pool", "operator": "Exists"}),
            [
                (
                    f"{TERM}.matchExpressions[0].key: '-pool' is not a valid label name: letters, digits, '-', "
                    "'_' and '.', at most 63, with an optional DNS prefix and '/'"
                )
            ],
        ),
        (
            required({"key": "pool", "operator": "in", "values": ["a"]}),
            [f"{TERM}.matchExpressions[0].operator: 'in' is not a valid node selector operator"],
        ),
        (
            required({"key": "pool", "operator": "In"}),
            [f"{TERM}.matchExpressions[0].values: must not be empty for operator In"],
        ),
        (
            required({"key": "pool", "operator": "NotIn", "values": ["a b"]}),
            [
                (
                    f"{TERM}.matchExpressions[0].values: 'a b' is not a valid label value: letters, digits, '-', "
                    "'_' and '.', at most 63"
                )
            ],
        ),
        (
            required({"key": "pool", "operator": "Exists", "values": ["a"]}),
            [f"{TERM}.matchExpressions[0].values: must be empty for operator Exists"],
        ),
        (
            required({"key": "cores", "operator": "Lt", "values": ["1.5"]}),
            [f"{TERM}.matchExpressions[0].values: must be exactly one integer for operator Lt"],
        ),
        (
            required(fields=({"key": "metadata.uid", "operator": "Exists", "values": []},)),
            [
                f"{TERM}.matchFields[0].key: 'metadata.uid' is not supported; nodes have only the field metadata.name",
                f"{TERM}.matchFields[0].operator: 'Exists' is not a valid field selector operator; choose In or NotIn",
                f"{TERM}.matchFields[0].values: must have one element",
            ],
        ),
        (
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "In"}]}}
                    ]
                }
            },
            [
                (
                    "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
                    ".preference.matchExpressions[0].values: must not be empty for operator In"
                )
            ],
        ),
    ],
)
def test_added_affinity_is_checked_term_by_term(args: dict[str, Any], problems: list[str]) -> None:
    typed, found = read("NodeAffinity", args)
    assert found == problems
    assert typed == NodeAffinityArgs(added_affinity=args["addedAffinity"])


def test_since_1_37_storage_scoring_prefers_emptier_storage_by_default() -> None:
    shape = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))
    assert default_plugin_args("VolumeBinding", NEXT) == VolumeBindingArgs(shape=shape)
    assert read("VolumeBinding", {"shape": [{"utilization": 30, "score": 4}]}, NEXT) == (
        VolumeBindingArgs(shape=(ShapePoint(utilization=30, score=4),)),
        [],
    )
