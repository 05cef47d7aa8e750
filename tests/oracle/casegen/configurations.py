"""Generates scheduler configurations. Together they set every argument of every default plugin. Many of them enable or
disable plugins, or set weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.casegen import terms
from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw

API = "kubescheduler.config.k8s.io/v1"
SCORERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "VolumeBinding",
    "DynamicResources",
)
FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)


def without_plugins(d: Draw) -> dict[str, Any]:
    """Returns a configuration that only disables plugins."""
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    _without(d, profile, [])
    return {"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}


# These filters work without their PreFilter. Every other filter that has a PreFilter ends the cycle with an error if it
# runs without the PreFilter. Whether it runs depends on the results of earlier filters, and on the order of the nodes.
PREPARE_LATE = ("NodeAffinity", "VolumeZone", "NodeVolumeLimits")


def configuration(d: Draw, nodes: list[str], *, whole_plugins: bool = False) -> dict[str, Any]:
    """Returns one configuration, usually with one profile. The first profile has one or two of the `CHANGES`.

    With `whole_plugins`, the first profile does not disable plugins at `multiPoint` (all extension points together),
    but may disable plugins at a single extension point, such as `score`. A second profile ignores `whole_plugins`.
    """
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    for change in d.some([one for one in CHANGES if not (whole_plugins and one in (_bare, _without))], 2):
        change(d, profile, nodes)
    profiles = [profile]
    if d.maybe(0.08):
        other: dict[str, Any] = {"schedulerName": "second-scheduler"}
        d.choice(CHANGES)(d, other, nodes)
        profiles.append(other)
    return {"apiVersion": API, "kind": "KubeSchedulerConfiguration", "profiles": profiles}


def _arguments(profile: dict[str, Any], name: str, **args: Any) -> None:
    entries = profile.setdefault("pluginConfig", [])
    entries[:] = [entry for entry in entries if entry["name"] != name]
    entries.append({"name": name, "args": {"apiVersion": API, "kind": f"{name}Args", **args}})


def _resources(d: Draw, *, weights: bool = True) -> list[dict[str, Any]]:
    names = d.some(("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "example.com/fpga"), 4)
    return [{"name": name, "weight": d.choice((1, 1, 2, 5, 100)) if weights else 1} for name in names]


def _fit_strategy(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    strategy: dict[str, Any] = {"type": d.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))}
    if d.maybe(0.8) or strategy["type"] == "RequestedToCapacityRatio":
        strategy["resources"] = _resources(d)
    if strategy["type"] == "RequestedToCapacityRatio":
        steps = sorted(d.some(range(101), 4, least=2))
        strategy["requestedToCapacityRatio"] = {
            "shape": [{"utilization": step, "score": d.randint(0, 10)} for step in steps]
        }
    _arguments(profile, "NodeResourcesFit", scoringStrategy=strategy)


def _fit_ignored(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    args: dict[str, Any] = {}
    if d.maybe(0.7):
        args["ignoredResources"] = d.some(("example.com/gpu", "example.com/fpga"), 2)
    if d.maybe(0.7) or not args:
        args["ignoredResourceGroups"] = d.some(("example.com", "other.example"), 2)
    _arguments(profile, "NodeResourcesFit", **args)


def _balanced(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    _arguments(profile, "NodeResourcesBalancedAllocation", resources=_resources(d, weights=False))


def _added_affinity(d: Draw, profile: dict[str, Any], nodes: list[str]) -> None:
    added = terms.node_affinity(d, nodes, 0.7, 0.6)
    for term in added.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", []):
        _make_valid(term)
    for preferred in added.get("preferredDuringSchedulingIgnoredDuringExecution", []):
        preferred["weight"] = max(1, preferred["weight"])
        _make_valid(preferred["preference"])
    _arguments(profile, "NodeAffinity", addedAffinity=added)


def _make_valid(term: dict[str, Any]) -> None:
    """Removes from a node selector term the expressions that the validation of plugin arguments refuses."""
    for field in ("matchExpressions", "matchFields"):
        term[field] = [
            e
            for e in term.get(field, [])
            if e["operator"] != "Near"
            and " " not in e["key"]
            and not (field == "matchFields" and e["operator"] == "Exists")
            and (
                e["operator"] in ("Exists", "DoesNotExist")
                or (e.get("values") and not any("!" in value for value in e["values"]))
            )
            and (e["operator"] not in ("Gt", "Lt") or (e["values"][0].isdigit() and int(e["values"][0]) < 2**63))
        ]
        if not term[field]:
            del term[field]


def _neighbours(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    args: dict[str, Any] = {"hardPodAffinityWeight": d.choice((0, 1, 5, 50, 100))}
    if d.maybe(0.4):
        args["ignorePreferredTermsOfExistingPods"] = d.maybe(0.7)
    _arguments(profile, "InterPodAffinity", **args)


def _spreading(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    if d.maybe(0.1):
        _arguments(profile, "PodTopologySpread", defaultingType="System")
        return
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(d.choice((0, 1, 1, 2, 3))):
        one = {
            "maxSkew": d.randint(1, 3),
            "topologyKey": d.often(word.TOPOLOGY_KEYS, ("disk",), 0.1),
            "whenUnsatisfiable": d.choice(("ScheduleAnyway", "DoNotSchedule")),
        }
        found[one["topologyKey"], one["whenUnsatisfiable"]] = one
    _arguments(profile, "PodTopologySpread", defaultingType="List", defaultConstraints=list(found.values()))


def _preemption(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    _arguments(
        profile,
        "DefaultPreemption",
        minCandidateNodesPercentage=d.choice((0, 10, 50, 100)),
        minCandidateNodesAbsolute=d.choice((1, 2, 5, 100)),
    )


def _timeouts(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    _arguments(profile, "VolumeBinding", bindTimeoutSeconds=d.choice((1, 60)))
    profile["percentageOfNodesToScore"] = d.choice((0, 50, 100))


def _weights(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    enabled = [{"name": name, "weight": d.choice((1, 2, 3, 7, 50))} for name in d.some(SCORERS, 3)]
    _points(profile)[d.choice(("multiPoint", "score"))] = {"enabled": enabled}
    if "score" in profile["plugins"] and d.maybe(0.5):
        profile["plugins"]["score"]["disabled"] = [{"name": entry["name"]} for entry in enabled]


def _fewer_scores(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    if d.maybe(0.3):
        kept = d.some(SCORERS[:7], 2, least=0)
        _points(profile)["score"] = {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": name, "weight": 2} for name in kept],
        }
    else:
        _points(profile)["score"] = {"disabled": [{"name": name} for name in d.some(SCORERS, 3)]}


def _fewer_filters(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    _points(profile)["filter"] = {"disabled": [{"name": name} for name in d.some(FILTERS, 3)]}


def _no_preemption(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    _points(profile)["postFilter"] = {"disabled": [{"name": d.choice(("DefaultPreemption", "DynamicResources", "*"))}]}


def _without(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    """Disables whole plugins, so that the scheduler runs later plugins on nodes that an earlier plugin would refuse."""
    names = d.choice(
        (
            ["VolumeBinding", "VolumeRestrictions"],
            ["VolumeBinding"],
            ["VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits"],
            ["VolumeRestrictions", "VolumeBinding", "VolumeZone"],
            ["VolumeZone"],
            ["DynamicResources"],
            d.some(FILTERS, 2),
        )
    )
    _points(profile)["multiPoint"] = {"disabled": [{"name": name} for name in names]}


def _unprepared(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    """Disables preFilter or preScore of one or two plugins. Some plugins work without this extension point; other
    plugins end the cycle with an error."""
    point = d.choice(("preFilter", "preScore"))
    names = PREPARE_LATE if point == "preFilter" else SCORERS
    _points(profile)[point] = {"disabled": [{"name": name} for name in d.some(names, 2)]}


def _bare(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    """Enables only a few plugins, each at all its extension points."""
    kept = ["PrioritySort", "DefaultBinder", *d.some(sorted({*FILTERS, *SCORERS, "DefaultPreemption"}), 8, least=2)]
    _points(profile)["multiPoint"] = {
        "disabled": [{"name": "*"}],
        "enabled": [
            {"name": name, "weight": d.choice((1, 2, 4))} if name in SCORERS and d.maybe(0.5) else {"name": name}
            for name in kept
        ],
    }


def _reordered(d: Draw, profile: dict[str, Any], _nodes: list[str]) -> None:
    """Enables filters by name, so that they run before the filters from MultiPoint."""
    _points(profile)["filter"] = {"enabled": [{"name": name} for name in d.some(FILTERS[:8], 2)]}


def _points(profile: dict[str, Any]) -> dict[str, Any]:
    points: dict[str, Any] = profile.setdefault("plugins", {})
    return points


CHANGES: tuple[Callable[[Draw, dict[str, Any], list[str]], None], ...] = (
    _fit_strategy,
    _fit_strategy,
    _fit_ignored,
    _balanced,
    _added_affinity,
    _neighbours,
    _spreading,
    _spreading,
    _preemption,
    _timeouts,
    _weights,
    _weights,
    _fewer_scores,
    _fewer_filters,
    _no_preemption,
    _without,
    _reordered,
    _unprepared,
    _bare,
)
