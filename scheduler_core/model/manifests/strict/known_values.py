"""Values that no API server accepts and that scheduling would misread without a word: `effect: noSchedule`, a negative
request, `In` without values. Only a strict reader of manifests that people write checks them. Some rules of the API
server are left out, because kube-scheduler's own unit tests break them.

Source: pkg/apis/core/validation and apimachinery's validation of selectors, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler_core.model.quantity import parse_nanos

Problem = tuple[str, str]
"""The field, and what is wrong with it."""

_IN_SETS: Final = ("In", "NotIn")
_ALONE: Final = ("Exists", "DoesNotExist")
_COMPARED: Final = ("Gt", "Lt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES: Final = ("Honor", "Ignore")
_RESTARTS: Final = ("Always", "OnFailure", "Never")

_CHOICES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Container": {"restartPolicy": _RESTARTS},
    "ContainerPort": {"protocol": ("TCP", "UDP", "SCTP")},
    "LabelSelectorRequirement": {"operator": (*_IN_SETS, *_ALONE)},
    "NodeSelectorRequirement": {"operator": (*_IN_SETS, *_ALONE, *_COMPARED)},
    "PodSpec": {"preemptionPolicy": ("PreemptLowerPriority", "Never"), "restartPolicy": _RESTARTS},
    "Taint": {"effect": _EFFECTS},
    "Toleration": {"operator": ("Exists", "Equal", *_COMPARED), "effect": _EFFECTS},
    "TopologySpreadConstraint": {
        "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
        "nodeAffinityPolicy": _POLICIES,
        "nodeTaintsPolicy": _POLICIES,
    },
}
_RANGES: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = {
    "ContainerPort": {"hostPort": (0, 65_535), "containerPort": (0, 65_535)},
    "PreferredSchedulingTerm": {"weight": (1, 100)},
    "TopologySpreadConstraint": {"maxSkew": (1, 2**31 - 1), "minDomains": (1, 2**31 - 1)},
    "WeightedPodAffinityTerm": {"weight": (1, 100)},
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "LabelSelectorRequirement": ("key",),
    "NodeSelectorRequirement": ("key",),
    "PreferredSchedulingTerm": ("weight", "preference"),
    "Taint": ("key", "effect"),
    "TopologySpreadConstraint": ("maxSkew", "topologyKey"),
    "WeightedPodAffinityTerm": ("weight", "podAffinityTerm"),
}
_AMOUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "NodeStatus": ("allocatable", "capacity"),
    "PodSpec": ("overhead",),
    "ResourceRequirements": ("requests", "limits"),
    "VolumeResourceRequirements": ("requests", "limits"),
}


def wrong_value(type_name: str, value: Mapping[str, Any]) -> Problem | None:
    """The first field of this object, not of those in it, with a value that no API server accepts. Leaves values of
    another type to the reader."""
    if type_name not in _CHECKED:
        return None
    for name in _NEEDED.get(type_name, ()):
        if value.get(name) in (None, ""):
            return name, "is missing"
    for name, choices in _CHOICES.get(type_name, {}).items():
        given = value.get(name)
        if isinstance(given, str) and given and given not in choices:
            return name, f"{given!r} is none of {', '.join(choices)}"
    for name, (least, most) in _RANGES.get(type_name, {}).items():
        given = value.get(name)
        if isinstance(given, int) and not least <= given <= most:
            return name, f"{given} is not between {least} and {most}"
    for name in _AMOUNTS.get(type_name, ()):
        if (problem := _negative(name, value.get(name))) is not None:
            return problem
    rule = _RULES.get(type_name)
    return None if rule is None else rule(value)


def _negative(name: str, amounts: Any) -> Problem | None:
    for resource, amount in amounts.items() if isinstance(amounts, Mapping) else ():
        nanos = _nanos(amount)
        if nanos is not None and nanos < 0:
            return f"{name}.{resource}", f"{amount!r} is negative: expected 0 or more"
    return None


def _nanos(amount: Any) -> int | None:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return None
    try:
        return parse_nanos(str(amount))
    except ValueError:
        return None  # the reader says so


def _values(value: Mapping[str, Any]) -> Problem | None:
    operator, given = value.get("operator"), value.get("values") or ()
    if not isinstance(given, list | tuple):
        return None
    if operator in _IN_SETS and not given:
        return "values", f"{operator} needs at least one"
    if operator in _ALONE and given:
        return "values", f"{operator} takes none"
    if operator in _COMPARED and not (len(given) == 1 and _is_whole(given[0])):
        return "values", f"{operator} needs one whole number as a text, such as ['4']"
    return None


def _is_whole(text: Any) -> bool:
    return isinstance(text, str) and text.lstrip("+-").isascii() and text.lstrip("+-").isdecimal()


def _toleration(value: Mapping[str, Any]) -> Problem | None:
    if value.get("operator") == "Exists" and value.get("value"):
        return "value", "Exists takes none: leave it out, or use the operator Equal"
    return None


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], Problem | None]]] = {
    "LabelSelectorRequirement": _values,
    "NodeSelectorRequirement": _values,
    "Toleration": _toleration,
}
_CHECKED: Final = frozenset({*_CHOICES, *_RANGES, *_NEEDED, *_AMOUNTS, *_RULES})
