"""The arguments of each default plugin, with types, defaults and validation.

They follow kube-scheduler's pkg/scheduler/apis/config (v1, v1.36). Arguments of a plugin that is not listed here stay
as they are: only its author knows their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from scheduler_core.config.fields import Section
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.model.labels import is_label_key, is_label_value
from scheduler_core.values import Value

API_VERSION = "kubescheduler.config.k8s.io/v1"

ScoringStrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
_STRATEGIES: tuple[ScoringStrategyType, ...] = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


class ResourceWeight(Value, kw_only=True):
    name: str
    weight: int


class ShapePoint(Value, kw_only=True):
    """Utilization in percent (0 to 100), score from 0 to 10."""

    utilization: int
    score: int


_CPU_AND_MEMORY = (ResourceWeight(name="cpu", weight=1), ResourceWeight(name="memory", weight=1))


class NodeResourcesFitArgs(Value, kw_only=True):
    """`shape` is empty if the strategy needs none."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    strategy: ScoringStrategyType = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = _CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()


class BalancedAllocationArgs(Value, kw_only=True):
    resources: tuple[ResourceWeight, ...] = _CPU_AND_MEMORY


class InterPodAffinityArgs(Value, kw_only=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Value, kw_only=True):
    """`added_affinity`: a validated nodeAffinity in the API's form, or None."""

    added_affinity: Mapping[str, Any] | None = None


class PodTopologySpreadArgs(Value, kw_only=True):
    """`default_constraints`: topologySpreadConstraints in the API's form, without selector. They apply only if the
    defaulting type is List."""

    defaulting_type: Literal["System", "List"] = "System"
    default_constraints: tuple[Mapping[str, Any], ...] = ()


class DefaultPreemptionArgs(Value, kw_only=True):
    """Preemption stops when it has found enough candidate nodes: the larger of a percentage of the nodes and an
    absolute number."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class VolumeBindingArgs(Value, kw_only=True):
    """`shape`: from the utilization of storage to a score; empty if storage is not scored."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] = ()


class DynamicResourcesArgs(Value, kw_only=True):
    filter_timeout_seconds: float = 10.0
    binding_timeout_seconds: float = 600.0


def read_plugin_args(name: str, written: Section, kube_version: KubeVersion) -> object:
    """Typed for a default plugin with arguments; the unchanged mapping for another plugin.

    Problems go to the section's list. If there is one, the caller must not use the returned value.
    """
    reader = _READERS.get(name)
    if reader is None:
        return dict(written.values)
    kind = written.text("kind", f"{name}Args")
    if kind != f"{name}Args":
        written.refuse("kind", f"args for plugin {name} must be of kind {name}Args, not {kind}")
    api_version = written.text("apiVersion", API_VERSION)
    if api_version != API_VERSION:
        written.refuse("apiVersion", f"the apiVersion must be {API_VERSION}, not {api_version}")
    args = reader(written, kube_version)
    written.refuse_unknown()
    return args


def default_plugin_args(name: str, kube_version: KubeVersion) -> object:
    """What applies if the configuration sets none; None for a plugin without arguments."""
    reader = _READERS.get(name)
    return None if reader is None else reader(Section(values={}, path="", problems=[]), kube_version)


# ---- one reader per plugin ----


def _read_node_resources_fit(written: Section, _: KubeVersion) -> NodeResourcesFitArgs:
    ignored, groups = written.texts("ignoredResources"), written.texts("ignoredResourceGroups")
    for index, name in enumerate(ignored):
        _check_label_name(written, f"ignoredResources[{index}]", name)
    for index, group in enumerate(groups):
        if "/" in group:
            written.refuse(f"ignoredResourceGroups[{index}]", f"{group!r}: resource group name can't contain '/'")
        _check_label_name(written, f"ignoredResourceGroups[{index}]", group)
    if not written.has("scoringStrategy"):
        return NodeResourcesFitArgs(ignored_resources=ignored, ignored_resource_groups=groups)
    strategy = written.section("scoringStrategy")
    chosen = _read_strategy_type(strategy)
    resources = _read_resources(strategy)
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            strategy.refuse(
                f"resources[{index}].weight",
                f"{resource.weight}: resource weight of {resource.name} not in valid range (0, 100]",
            )
    shape = _read_ratio_shape(strategy, chosen)
    strategy.refuse_unknown()
    return NodeResourcesFitArgs(
        ignored_resources=ignored,
        ignored_resource_groups=groups,
        strategy=chosen or "LeastAllocated",
        resources=resources,
        shape=shape,
    )


def _read_strategy_type(strategy: Section) -> ScoringStrategyType | None:
    # A strategy that is present must have a type: the default type applies only to an absent strategy.
    written = strategy.text("type")
    for known in _STRATEGIES:
        if written == known:
            return known
    strategy.refuse("type", f"{written!r} is not supported; choose one of {', '.join(_STRATEGIES)}")
    return None


def _read_ratio_shape(strategy: Section, chosen: ScoringStrategyType | None) -> tuple[ShapePoint, ...]:
    if chosen == "RequestedToCapacityRatio":
        if not strategy.has("requestedToCapacityRatio"):
            strategy.refuse("requestedToCapacityRatio", "must be specified when type is RequestedToCapacityRatio")
            return ()
        ratio = strategy.section("requestedToCapacityRatio")
        shape = _read_shape(ratio)
        ratio.refuse_unknown()
        return shape
    if strategy.has("requestedToCapacityRatio"):
        strategy.refuse("requestedToCapacityRatio", "must be absent when type is not RequestedToCapacityRatio")
    return ()


def _read_balanced_allocation(written: Section, _: KubeVersion) -> BalancedAllocationArgs:
    resources = _read_resources(written)
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        if resource.name in seen:
            written.refuse(f"resources[{index}].name", f"{resource.name!r} is listed twice")
        if resource.weight != 1:
            written.refuse(f"resources[{index}].weight", f"{resource.weight}: must be 1")
        seen.add(resource.name)
    return BalancedAllocationArgs(resources=resources)


def _read_inter_pod_affinity(written: Section, _: KubeVersion) -> InterPodAffinityArgs:
    weight = written.integer("hardPodAffinityWeight", 1)
    if not 0 <= weight <= 100:
        written.refuse("hardPodAffinityWeight", f"{weight}: not in valid range [0, 100]")
    return InterPodAffinityArgs(
        hard_pod_affinity_weight=weight,
        ignore_preferred_terms_of_existing_pods=written.flag("ignorePreferredTermsOfExistingPods"),
    )


def _read_node_affinity(written: Section, _: KubeVersion) -> NodeAffinityArgs:
    if not written.has("addedAffinity"):
        return NodeAffinityArgs()
    added = written.section("addedAffinity")
    if added.has("requiredDuringSchedulingIgnoredDuringExecution"):
        required = added.section("requiredDuringSchedulingIgnoredDuringExecution")
        for term in required.sections("nodeSelectorTerms"):
            _check_node_selector_term(term)
        required.refuse_unknown()
    for preferred in added.sections("preferredDuringSchedulingIgnoredDuringExecution"):
        preferred.integer("weight", 0)
        for name in ("weight", "preference"):
            if name in preferred.values and not preferred.has(name):
                preferred.refuse(name, "must not be null")
        _check_node_selector_term(preferred.section("preference"))
        preferred.refuse_unknown()
    added.refuse_unknown()
    return NodeAffinityArgs(added_affinity=added.values)


def _read_pod_topology_spread(written: Section, _: KubeVersion) -> PodTopologySpreadArgs:
    constraints = written.sections("defaultConstraints")
    defaulting = written.text("defaultingType", "System") or "System"
    if defaulting not in ("System", "List"):
        written.refuse("defaultingType", f"{defaulting!r} is not supported; choose one of List, System")
    elif defaulting == "System" and constraints:
        written.refuse("defaultingType", "must be List when defaultConstraints are given")
    seen: set[tuple[str, str]] = set()
    for constraint in constraints:
        identity = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"))
        _check_default_constraint(constraint, *identity)
        if identity in seen:
            constraint.refuse("", f"{{{identity[0]}, {identity[1]}}} is listed twice")
        seen.add(identity)
    return PodTopologySpreadArgs(
        defaulting_type="List" if defaulting == "List" else "System",
        default_constraints=tuple(c.values for c in constraints),
    )


def _check_default_constraint(constraint: Section, topology_key: str, when_unsatisfiable: str) -> None:
    skew = constraint.integer("maxSkew", 0)
    if skew <= 0:
        constraint.refuse("maxSkew", f"{skew}: not in valid range (0, inf)")
    if not topology_key:
        constraint.refuse("topologyKey", "can not be empty")
    else:
        _check_label_name(constraint, "topologyKey", topology_key)
    if when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        constraint.refuse(
            "whenUnsatisfiable", f"{when_unsatisfiable!r} is not supported; choose one of DoNotSchedule, ScheduleAnyway"
        )
    if constraint.has("labelSelector"):
        constraint.refuse("labelSelector", "constraint must not define a selector: it is deduced for each pod")
    constraint.refuse_unknown("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys")


def _read_default_preemption(written: Section, _: KubeVersion) -> DefaultPreemptionArgs:
    percentage, absolute = (
        written.integer("minCandidateNodesPercentage", 10),
        written.integer("minCandidateNodesAbsolute", 100),
    )
    if not 0 <= percentage <= 100:
        written.refuse("minCandidateNodesPercentage", f"{percentage}: not in valid range [0, 100]")
    if absolute < 0:
        written.refuse("minCandidateNodesAbsolute", f"{absolute}: not in valid range [0, inf)")
    if percentage == absolute == 0:
        written.refuse("minCandidateNodesPercentage", "0: cannot be zero at the same time as minCandidateNodesAbsolute")
    return DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)


def _read_volume_binding(written: Section, kube_version: KubeVersion) -> VolumeBindingArgs:
    timeout = written.integer("bindTimeoutSeconds", 600, bits=64)
    if timeout < 0:
        written.refuse("bindTimeoutSeconds", f"{timeout}: should not be a negative value")
    if kube_version.storage_capacity_scoring:
        shape = _read_shape(written) if written.has("shape") and written.raw("shape") else _EMPTIEST_STORAGE_FIRST
        return VolumeBindingArgs(bind_timeout_seconds=timeout, shape=shape)
    if written.has("shape"):
        written.refuse(
            "shape",
            f"unexpected field: Kubernetes {kube_version} does not score storage (feature gate "
            "StorageCapacityScoring is off)",
        )
    return VolumeBindingArgs(bind_timeout_seconds=timeout)


_EMPTIEST_STORAGE_FIRST = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


def _read_dynamic_resources(written: Section, _: KubeVersion) -> DynamicResourcesArgs:
    filtering, binding = (
        written.duration_seconds("filterTimeout", 10.0),
        written.duration_seconds("bindingTimeout", 600.0),
    )
    if filtering < 0:
        written.refuse("filterTimeout", "must be zero or positive")
    if binding < 1:
        written.refuse("bindingTimeout", "must be at least 1 second")
    return DynamicResourcesArgs(filter_timeout_seconds=filtering, binding_timeout_seconds=binding)


_READERS: Mapping[str, Callable[[Section, KubeVersion], object]] = {
    "DefaultPreemption": _read_default_preemption,
    "DynamicResources": _read_dynamic_resources,
    "InterPodAffinity": _read_inter_pod_affinity,
    "NodeAffinity": _read_node_affinity,
    "NodeResourcesBalancedAllocation": _read_balanced_allocation,
    "NodeResourcesFit": _read_node_resources_fit,
    "PodTopologySpread": _read_pod_topology_spread,
    "VolumeBinding": _read_volume_binding,
}


# ---- shared by several readers ----


def _read_resources(section: Section) -> tuple[ResourceWeight, ...]:
    found = []
    for resource in section.sections("resources"):
        name, weight = resource.text("name"), resource.integer("weight", 0, bits=64)
        resource.refuse_unknown()
        found.append(ResourceWeight(name=name, weight=weight or 1))  # zero means unset
    return tuple(found) or _CPU_AND_MEMORY


def _read_shape(section: Section) -> tuple[ShapePoint, ...]:
    points = section.sections("shape")
    shape = tuple(ShapePoint(utilization=p.integer("utilization", 0), score=p.integer("score", 0)) for p in points)
    if not shape:
        section.refuse("shape", "at least one point must be specified")
    for written, point in zip(points, shape, strict=True):
        if not 0 <= point.utilization <= 100:
            written.refuse("utilization", f"{point.utilization}: not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            written.refuse("score", f"{point.score}: not in valid range [0, 10]")
        written.refuse_unknown()
    for before, written, point in zip(shape, points[1:], shape[1:], strict=False):
        if before.utilization >= point.utilization:
            written.refuse("utilization", f"{point.utilization}: values must be sorted in increasing order")
            break
    return shape


def _check_label_name(section: Section, name: str, value: str) -> None:
    if not is_label_key(value):
        section.refuse(
            name,
            f"{value!r} is not a valid label name: letters, digits, '-', '_' and '.', at most 63, with an "
            "optional DNS prefix and '/'",
        )


def _check_node_selector_term(term: Section) -> None:
    for expression in term.sections("matchExpressions"):
        _check_label_name(expression, "key", expression.text("key"))
        _check_operator(expression)
    for match_field in term.sections("matchFields"):
        key, operator, values = match_field.text("key"), match_field.text("operator"), match_field.texts("values")
        if key != "metadata.name":
            match_field.refuse("key", f"{key!r} is not supported; nodes have only the field metadata.name")
        if operator not in ("In", "NotIn"):
            match_field.refuse("operator", f"{operator!r} is not a valid field selector operator; choose In or NotIn")
        if len(values) != 1:
            match_field.refuse("values", "must have one element")
        match_field.refuse_unknown()
    term.refuse_unknown()


def _check_operator(expression: Section) -> None:
    operator, values = expression.text("operator"), expression.texts("values")
    if operator in ("In", "NotIn"):
        if not values:
            expression.refuse("values", f"must not be empty for operator {operator}")
        for value in values:
            if not is_label_value(value):
                expression.refuse(
                    "values", f"{value!r} is not a valid label value: letters, digits, '-', '_' and '.', at most 63"
                )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            expression.refuse("values", f"must be empty for operator {operator}")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1 or not re.fullmatch(r"[+-]?\d+", values[0]):
            expression.refuse("values", f"must be exactly one integer for operator {operator}")
    else:
        expression.refuse("operator", f"{operator!r} is not a valid node selector operator")
    expression.refuse_unknown()
