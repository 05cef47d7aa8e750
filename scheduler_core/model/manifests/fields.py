"""Fields that several kinds of objects share: quantities, times, selectors, node affinity, names of in-tree disks.

from_manifest.py and storage_from_manifest.py read whole objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from scheduler_core.model.labels import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    NodeAffinityRules,
    NodeSelector,
    NodeSelectorTerm,
    PreferredNodeTerm,
    Requirement,
    is_label_key,
    is_label_value,
    parse_int64,
)
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import FieldError
from scheduler_core.model.quantity import QuantityError, parse_nanos


def amounts_nanos(written: wire.Quantities | None, where: str) -> dict[str, int]:
    """Accepts numbers as well as strings, like the API. Raises FieldError with the name of an invalid quantity."""
    if not written:
        return {}
    return {name: nanos(amount, f"{where}.{name}") for name, amount in written.items()}


def nanos(written: str | float, where: str) -> int:
    """Raises FieldError, with `where` as the field's name, for an invalid quantity."""
    try:
        return parse_nanos(written if type(written) is str else repr(written))
    except QuantityError as trouble:
        raise FieldError(where, str(trouble)) from trouble


def seconds(text: str | None, where: str) -> float | None:
    """Since the epoch, from `2026-11-23T20:12:00Z`; None for "" or None. Raises FieldError for an invalid time."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as trouble:
        raise FieldError(where, f"{text!r} is not a time") from trouble


def clock_at(text: str) -> Callable[[], float] | None:
    """A clock for `Scheduler` that stands at this time (RFC 3339), such as that of a snapshot; None if it is none."""
    try:
        moment = seconds(text, "")
    except FieldError:
        return None
    return None if moment is None else lambda: moment


def labels_of(written: wire.Pairs | None) -> wire.Pairs:
    """Empty if the object has none."""
    return written if written is not None else {}


_LABEL_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS: Final = _LABEL_OPERATORS | {"Gt", "Lt"}


def label_selector(written: wire.WireSelector | None) -> LabelSelector:
    """None selects nothing, an empty selector everything. One that cannot be read selects nothing and has a
    `problem`."""
    if written is None:
        return NOTHING
    pairs, expressions = written.match_labels or {}, written.match_expressions or ()
    if not pairs and not expressions:
        return EVERYTHING
    requirements = tuple(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items()))
    requirements += tuple(Requirement(e.key, e.operator, e.values or ()) for e in expressions)
    problem = next((text for text in (_requirement_problem(r, _LABEL_OPERATORS) for r in requirements) if text), "")
    return LabelSelector(None, problem) if problem else LabelSelector(requirements)


def _requirement_problem(requirement: Requirement, operators: frozenset[str]) -> str:
    """Why the API server would refuse the requirement (apimachinery/pkg/labels NewRequirement, v1.36), or ""."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator not in operators:
        return f'"{operator}" is not a valid label selector operator'
    if not is_label_key(key):
        return f"{key!r} is not a valid label key"
    if operator in ("In", "NotIn") and not values:
        return f"{key}: operator {operator} needs values"
    if operator in ("Exists", "DoesNotExist") and values:
        return f"{key}: operator {operator} takes no values"
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int64(values[0]) is None):
        return f"{key}: operator {operator} needs exactly one integer"
    wrong = next((value for value in values if not is_label_value(value)), None)
    return "" if wrong is None else f"{key}: {wrong!r} is not a valid label value"


def node_selector(written: wire.WireNodeSelector) -> NodeSelector:
    """A node matches if it matches one of the terms."""
    return NodeSelector(tuple(node_selector_term(term) for term in written.node_selector_terms or ()))


def node_selector_term(written: wire.WireNodeTerm) -> NodeSelectorTerm:
    """If a part cannot be read, the term's `problem` says why."""
    expressions = tuple(Requirement(e.key, e.operator, e.values or ()) for e in written.match_expressions or ())
    fields = tuple(Requirement(e.key, e.operator, e.values or ()) for e in written.match_fields or ())
    problems = [*(_requirement_problem(e, _NODE_OPERATORS) for e in expressions), *(_field_problem(f) for f in fields)]
    return NodeSelectorTerm(expressions=expressions, fields=fields, problem=next((p for p in problems if p), ""))


def _field_problem(requirement: Requirement) -> str:
    if requirement.operator not in ("In", "NotIn"):
        return f"{requirement.key}: {requirement.operator!r} is not a valid field selector operator"
    return "" if len(requirement.values) == 1 else f"{requirement.key}: must have one element"


def node_affinity(written: wire.WireNodeAffinity) -> NodeAffinityRules:
    return NodeAffinityRules(
        required=None if written.required is None else node_selector(written.required),
        preferred=tuple(PreferredNodeTerm(p.weight, node_selector_term(p.preference)) for p in written.preferred or ()),
    )


# ---- in-tree disks: which of the API's fields identifies the disk ----

DISK_IDENTITY: Final[Mapping[str, Callable[[wire.WireDisk], str]]] = {
    "gce_persistent_disk": lambda disk: disk.pd_name,
    "aws_elastic_block_store": lambda disk: disk.volume_id,
    "iscsi": lambda disk: disk.iqn,
    "rbd": lambda disk: disk.image,
    "azure_disk": lambda disk: disk.disk_uri,
    "azure_file": lambda disk: disk.share_name,
    "cinder": lambda disk: disk.volume_id,
    "vsphere_volume": lambda disk: disk.volume_path,
    "portworx_volume": lambda disk: disk.volume_id,
}
API_NAME: Final = {
    "gce_persistent_disk": "gcePersistentDisk",
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "azure_file": "azureFile",
    "vsphere_volume": "vsphereVolume",
    "portworx_volume": "portworxVolume",
}


def template_labels(template: wire.WireTemplate | None) -> tuple[tuple[str, str], ...]:
    """The labels of a pod template, sorted."""
    meta = template.metadata if template is not None else None
    return tuple(sorted((meta.labels or {}).items())) if meta is not None else ()


def template_node(template: wire.WireTemplate | None) -> str:
    """spec.nodeName of a pod template, usually empty. Pods of a template with a nodeName run there without a
    scheduler."""
    return template.spec.node_name if template is not None and template.spec is not None else ""
