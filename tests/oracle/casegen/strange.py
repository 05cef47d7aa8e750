"""Generates configurations with oddities or one mistake. Tests compare how both schedulers read a configuration, and
whether both start with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.casegen.configurations import API, FILTERS, SCORERS, configuration
from tests.oracle.casegen.draw import Draw

POINTS = (
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
NAMES = (*FILTERS, *SCORERS, "SchedulingGates", "PrioritySort", "DefaultBinder", "DefaultPreemption", "NoSuchPlugin")
ARGUMENTS: dict[str, tuple[dict[str, Any], ...]] = {  # each plugin's arguments at and beyond their limits
    "DefaultPreemption": (
        {"minCandidateNodesPercentage": 0},
        {"minCandidateNodesPercentage": 100},
        {"minCandidateNodesPercentage": 101},
        {"minCandidateNodesPercentage": -1},
        {"minCandidateNodesAbsolute": -1},
        {"minCandidateNodesAbsolute": 0},
        {"minCandidateNodesAbsolute": 0, "minCandidateNodesPercentage": 0},
        {"minCandidates": 3},
        {"minCandidateNodesPercentage": "10"},
    ),
    "InterPodAffinity": (
        {"hardPodAffinityWeight": 0},
        {"hardPodAffinityWeight": 100},
        {"hardPodAffinityWeight": 101},
        {"hardPodAffinityWeight": -1},
        {"ignorePreferredTermsOfExistingPods": True},
        {"hardPodAffinityWeight": 1.5},
    ),
    "NodeAffinity": (
        {},
        {"addedAffinity": {}},
        {"addedAffinity": None},
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
                }
            }
        },
        {
            "addedAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}
                ]
            }
        },
        {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]}},
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
                    ]
                }
            }
        },
    ),
    "NodeResourcesBalancedAllocation": (
        {"resources": []},
        {"resources": [{"name": "cpu", "weight": 1}]},
        {"resources": [{"name": "cpu", "weight": 2}]},
        {"resources": [{"name": "cpu"}]},
        {"resources": [{"name": "cpu", "weight": 0}]},
        {"resources": [{"name": "cpu", "weight": 1}, {"name": "cpu", "weight": 1}]},
        {"resources": [{"name": "bad name!", "weight": 1}]},
    ),
    "NodeResourcesFit": (
        {"ignoredResources": ["cpu"]},
        {"ignoredResources": ["example.com/gpu"]},
        {"ignoredResources": ["bad name!"]},
        {"ignoredResourceGroups": ["example.com/gpu"]},
        {"ignoredResourceGroups": ["example.com"]},
        {"ignoredResourceGroups": ["Bad!"]},
        {"scoringStrategy": {}},
        {"scoringStrategy": {"type": "Best"}},
        {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 0}]}},
        {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": -1}]}},
        {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
        {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": []}}},
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}]},
            }
        },
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 50, "score": 0}, {"utilization": 10, "score": 3}]
                },
            }
        },
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 50, "score": 0}, {"utilization": 50, "score": 3}]
                },
            }
        },
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 11}]},
            }
        },
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 101, "score": 1}]},
            }
        },
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": -1, "score": -1}]},
            }
        },
    ),
    "PodTopologySpread": (
        {"defaultingType": "List"},
        {"defaultingType": "Wild"},
        {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        },
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "ScheduleAnyway"}],
        },
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 1, "topologyKey": "bad key!", "whenUnsatisfiable": "ScheduleAnyway"}],
        },
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Sometimes"}],
        },
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                }
            ],
        },
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}] * 2,
        },
        {"defaultingType": "System", "defaultConstraints": []},
    ),
    "VolumeBinding": (
        {"bindTimeoutSeconds": 0},
        {"bindTimeoutSeconds": -1},
        {"shape": [{"utilization": 0, "score": 0}]},
    ),
    "ImageLocality": ({},),
    "NoSuchPlugin": ({},),
}


def strange_configuration(d: Draw) -> dict[str, Any]:
    """Returns a usual configuration with one to three oddities."""
    found = configuration(d, ["n0", "n1", "n2"], whole_plugins=True)
    for change in d.some(ODDITIES, 3):
        change(d, found)
    return found


def _profile(d: Draw, found: dict[str, Any]) -> dict[str, Any]:
    profiles: list[dict[str, Any]] = found["profiles"]
    return d.choice(profiles)


def _point(d: Draw, found: dict[str, Any]) -> None:
    selection: dict[str, Any] = {}
    if d.maybe(0.6):
        selection["disabled"] = [{"name": d.often(NAMES, ("*",), 0.3)} for _ in range(d.choice((1, 1, 2)))]
    if d.maybe(0.7) or not selection:
        selection["enabled"] = [
            {"name": d.choice(NAMES)}
            | ({"weight": d.often((1, 2, 7), (0, -1, 2147483647), 0.2)} if d.maybe(0.3) else {})
            for _ in range(d.choice((1, 1, 2, 3)))
        ]
    _profile(d, found).setdefault("plugins", {})[d.choice(POINTS)] = selection


def _argument(d: Draw, found: dict[str, Any]) -> None:
    name = d.choice(tuple(ARGUMENTS))
    entries = _profile(d, found).setdefault("pluginConfig", [])
    if not d.maybe(0.1):  # otherwise the plugin may have two entries
        entries[:] = [entry for entry in entries if entry["name"] != name]
    args = dict(d.choice(ARGUMENTS[name]))
    if d.maybe(0.8):
        args = {"apiVersion": API, "kind": f"{d.often((name,), ('Other',), 0.03)}Args"} | args
    entries.append({"name": name, "args": args})


def _top(d: Draw, found: dict[str, Any]) -> None:
    found |= d.choice(
        (
            {"parallelism": 0},
            {"parallelism": 4},
            {"percentageOfNodesToScore": 101},
            {"percentageOfNodesToScore": -1},
            {"percentageOfNodesToScore": 50},
            {"podInitialBackoffSeconds": 0},
            {"podMaxBackoffSeconds": 0},
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 3},
            {"unknownField": 1},
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            {"kind": "Scheduler"},
            {"leaderElection": {"leaderElect": False}},
            {"delayCacheUntilActive": True},
            {"enableProfiling": True},
        )
    )


def _profiles(d: Draw, found: dict[str, Any]) -> None:
    one = _profile(d, found)
    what = d.randint(0, 4)
    if what == 0:
        found["profiles"].append({"schedulerName": one.get("schedulerName", "x")})
    elif what == 1:
        one["schedulerName"] = ""
    elif what == 2:
        one["percentageOfNodesToScore"] = d.choice((-1, 0, 100, 101))
    elif what == 3:
        found["profiles"].append(
            {
                "schedulerName": "third",
                "plugins": {
                    "queueSort": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": d.choice(("PrioritySort", "NodeName"))}],
                    }
                },
            }
        )
    else:
        found["profiles"].append({})


def _extender(d: Draw, found: dict[str, Any]) -> None:
    one: dict[str, Any] = {"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter"}
    one |= d.choice(
        (
            {},
            {"prioritizeVerb": "prioritize"},
            {"prioritizeVerb": "prioritize", "weight": 2},
            {"prioritizeVerb": "prioritize", "weight": -1},
            {"bindVerb": "bind"},
            {"weight": 0},
            {"ignorable": True},
            {"nodeCacheCapable": True},
            {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]},
            {"managedResources": [{"name": "cpu"}]},
            {"managedResources": [{"name": "example.com/gpu"}, {"name": "example.com/gpu"}]},
            {"httpTimeout": "3s"},
            {"httpTimeout": "soon"},
            {"enableHTTPS": True},
            {"unknownVerb": "x"},
        )
    )
    found["extenders"] = [one] + ([dict(one)] if d.maybe(0.3) else [])


ODDITIES: tuple[Callable[[Draw, dict[str, Any]], None], ...] = (
    _point,
    _point,
    _point,
    _argument,
    _argument,
    _argument,
    _top,
    _profiles,
    _extender,
)
