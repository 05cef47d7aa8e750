"""Values that no API server accepts and that scheduling would misread without a word: `effect: noSchedule`, a negative
request, `In` without values. Only a strict reader checks them. Rules of the API server that matter for no decision are
left out: a container may have no name here, and a pod no container.

Source: pkg/apis/core/validation and apimachinery's validation of selectors, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler_core.model.labels import is_label_key, is_label_value
from scheduler_core.model.quantity import parse_nanos

Problem = tuple[str, str]
"""The field, and what is wrong with it."""

_IN_SETS: Final = ("In", "NotIn")
_ALONE: Final = ("Exists", "DoesNotExist")
_COMPARED: Final = ("Gt", "Lt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES: Final = ("Honor", "Ignore")
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_VOLUME_MODES: Final = ("Filesystem", "Block")
_COUNTS: Final = ("ExactCount", "All")
_ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_MOST: Final = 2**31 - 1
_ANY_COUNT: Final = (0, _MOST)

_CHOICES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Container": {"restartPolicy": _RESTARTS},
    "ContainerPort": {"protocol": ("TCP", "UDP", "SCTP")},
    "DeviceSubRequest": {"allocationMode": _COUNTS},
    "ExactDeviceRequest": {"allocationMode": _COUNTS},
    "LabelSelectorRequirement": {"operator": (*_IN_SETS, *_ALONE)},
    "NodeSelectorRequirement": {"operator": (*_IN_SETS, *_ALONE, *_COMPARED)},
    "PersistentVolumeClaimSpec": {"volumeMode": _VOLUME_MODES},
    "PersistentVolumeSpec": {"volumeMode": _VOLUME_MODES},
    "PodDisruptionBudgetSpec": {"unhealthyPodEvictionPolicy": ("IfHealthyBudget", "AlwaysAllow")},
    "PodSpec": {"preemptionPolicy": ("PreemptLowerPriority", "Never"), "restartPolicy": _RESTARTS},
    "PodStatus": {"phase": _PHASES},
    "StorageClass": {"volumeBindingMode": ("Immediate", "WaitForFirstConsumer")},
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
    "DeviceSubRequest": {"count": (1, _MOST)},
    "ExactDeviceRequest": {"count": (1, _MOST)},
    "PodDisruptionBudgetStatus": dict.fromkeys(
        ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), _ANY_COUNT
    ),
    "PodSpec": {"priority": (-(2**31), _MOST)},
    "PreferredSchedulingTerm": {"weight": (1, 100)},
    "TopologySpreadConstraint": {"maxSkew": (1, _MOST), "minDomains": (1, _MOST)},
    "VolumeNodeResources": {"count": _ANY_COUNT},
    "WeightedPodAffinityTerm": {"weight": (1, 100)},
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "CSINodeDriver": ("name",),
    "CSIPersistentVolumeSource": ("driver", "volumeHandle"),
    "DeviceRequest": ("name",),
    "LabelSelectorRequirement": ("key", "operator"),
    "NodeSelector": ("nodeSelectorTerms",),
    "NodeSelectorRequirement": ("key", "operator"),
    "OwnerReference": ("kind", "name"),
    "Pod": ("spec",),
    "PodAffinityTerm": ("topologyKey",),
    "PodResourceClaim": ("name",),
    "PodSchedulingGate": ("name",),
    "PreferredSchedulingTerm": ("weight", "preference"),
    "Taint": ("key", "effect"),
    "StorageClass": ("provisioner",),
    "TopologySpreadConstraint": ("maxSkew", "topologyKey", "whenUnsatisfiable"),
    "WeightedPodAffinityTerm": ("weight", "podAffinityTerm"),
}
_AMOUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ContainerStatus": ("allocatedResources",),
    "PersistentVolumeSpec": ("capacity",),
    "NodeStatus": ("allocatable", "capacity"),
    "PodSpec": ("overhead",),
    "PodStatus": ("allocatedResources",),
    "ResourceRequirements": ("requests", "limits"),
    "VolumeResourceRequirements": ("requests", "limits"),
}


def wrong_value(type_name: str, value: Mapping[str, Any]) -> Problem | None:
    """The first field of this object, not of those in it, with a value that no API server accepts. Leaves values of
    another type to the reader."""
    if type_name not in _CHECKED:
        return None
    for name in _NEEDED.get(type_name, ()):
        if value.get(name) in (None, "", [], ()):
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


def _match_labels(value: Mapping[str, Any]) -> Problem | None:
    pairs = value.get("matchLabels")
    for key, label in pairs.items() if isinstance(pairs, Mapping) else ():
        if isinstance(key, str) and not is_label_key(key):
            return f"matchLabels.{key}", f"{key!r} is not a valid label key"
        if isinstance(label, str) and not is_label_value(label):
            return f"matchLabels.{key}", f"{label!r} is not a valid label value"
    return None


def _values(value: Mapping[str, Any]) -> Problem | None:
    operator, given = value.get("operator"), value.get("values") or ()
    if not isinstance(given, list | tuple):
        return None
    key = value.get("key")
    if isinstance(key, str) and not is_label_key(key):
        return "key", f"{key!r} is not a valid label key"
    if operator in _IN_SETS and not given:
        return "values", f"{operator} needs at least one"
    if operator in _ALONE and given:
        return "values", f"{operator} takes none"
    wrong = next((each for each in given if isinstance(each, str) and not is_label_value(each)), None)
    if operator in _IN_SETS and wrong is not None:
        return "values", f"{wrong!r} is not a valid label value"
    if operator in _COMPARED and not (len(given) == 1 and _is_whole(given[0])):
        return "values", f"{operator} needs one whole number as a text, such as ['4']"
    return None


def _is_whole(text: Any) -> bool:
    return isinstance(text, str) and text.lstrip("+-").isascii() and text.lstrip("+-").isdecimal()


def _toleration(value: Mapping[str, Any]) -> Problem | None:
    if value.get("operator") == "Exists" and value.get("value"):
        return "value", "Exists takes none: leave it out, or use the operator Equal"
    if not value.get("key") and value.get("operator") != "Exists":
        return "key", "is missing: only the operator Exists tolerates every key"
    return None


def _budget(value: Mapping[str, Any]) -> Problem | None:
    limits = [name for name in ("minAvailable", "maxUnavailable") if value.get(name) is not None]
    if len(limits) > 1:
        return "maxUnavailable", "a budget has either this or minAvailable"
    for name in limits:
        given = value[name]
        digits = given.removesuffix("%") if isinstance(given, str) else ""
        is_share = isinstance(given, str) and given.endswith("%") and digits.isascii() and digits.isdecimal()
        if not is_share and not (isinstance(given, int) and given >= 0):
            return name, f"{given!r} is neither a number of pods, 0 or more, nor a share such as '30%'"
    return None


def _access_modes(value: Mapping[str, Any]) -> Problem | None:
    given = value.get("accessModes")
    for each in given if isinstance(given, list | tuple) else ():
        if isinstance(each, str) and each not in _ACCESS_MODES:
            return "accessModes", f"{each!r} is none of {', '.join(_ACCESS_MODES)}"
    return None


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], Problem | None]]] = {
    "LabelSelector": _match_labels,
    "LabelSelectorRequirement": _values,
    "NodeSelectorRequirement": _values,
    "PersistentVolumeClaimSpec": _access_modes,
    "PersistentVolumeSpec": _access_modes,
    "PodDisruptionBudgetSpec": _budget,
    "Toleration": _toleration,
}
_CHECKED: Final = frozenset({*_CHOICES, *_RANGES, *_NEEDED, *_AMOUNTS, *_RULES})
