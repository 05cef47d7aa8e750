"""Label and field selectors, of a query or of an object's `selector`, as predicates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from drydock.server.api_errors import bad_request

Matches = Callable[[Mapping[str, Any]], bool]

_SET_TERM = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_EQUAL_TERM = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS_TERM = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=,()]+)\s*$")


def _split_outside_parentheses(text: str) -> list[str]:
    return [part for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def label_selector_from_text(text: str) -> Matches:
    """On labels, from a text such as `app=web,tier in (a,b),!old` (apimachinery `labels/selector.go`)."""
    terms = [_label_term(part) for part in _split_outside_parentheses(text)]
    return lambda labels: all(term(labels) for term in terms)


def _label_term(part: str) -> Matches:
    if found := _SET_TERM.match(part):
        key, values = found["key"], {v.strip() for v in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if found := _EQUAL_TERM.match(part):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS_TERM.match(part):
        key, wanted = found["key"], not found["no"]
        return lambda labels: (key in labels) is wanted
    raise bad_request(f"unable to parse requirement: {part!r} is not a label selector term")


def label_selector_from_object(selector: Mapping[str, Any] | None) -> Matches:
    """From a `metav1.LabelSelector`: an absent one matches nothing, an empty one everything."""
    if selector is None:
        return lambda _labels: False
    equal: Mapping[str, str] = selector.get("matchLabels") or {}
    expressions = [_expression(e) for e in selector.get("matchExpressions") or []]
    return lambda labels: all(labels.get(k) == v for k, v in equal.items()) and all(e(labels) for e in expressions)


def _expression(expression: Mapping[str, Any]) -> Matches:
    key, operator, values = expression["key"], expression["operator"], set(expression.get("values") or ())
    match operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case _:
            raise bad_request(f'"{operator}" is not a valid label selector operator')


# Fields that the real server can select on, besides metadata.name and metadata.namespace. An empty list is
# refused there with 400, so that a client cannot believe in a selector that does nothing.
_SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "events"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("apps", "replicasets"): ("status.replicas",),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
}


def field_selector_from_text(text: str, storage: tuple[str, str]) -> Matches:
    """On an object, from a text such as `spec.nodeName=n1,status.phase!=Failed`. Raises 400 for an unsupported
    field."""
    known = ("metadata.name", "metadata.namespace", *_SELECTABLE.get(storage, ()))
    terms = [_field_term(part, known) for part in text.split(",") if part.strip()]
    return lambda obj: all(term(obj) for term in terms)


def _field_term(part: str, known: tuple[str, ...]) -> Matches:
    found = re.match(r"^\s*([^\s!=]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
    if not found:
        raise bad_request(f"invalid field selector: {part!r}; can't understand it")
    path, operator, value = found.groups()
    if path not in known:
        raise bad_request(f'field label not supported: "{path}"')
    wanted = operator != "!="
    return lambda obj: (_field_text(obj, path) == value) is wanted


def _field_text(obj: Mapping[str, Any], path: str) -> str:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    # The real server's field set of a Node or Pod writes an absent boolean as false.
    if value is None and path in {"spec.unschedulable", "spec.hostNetwork"}:
        return "false"
    return "" if value is None else str(value)


def object_selector(label_text: str, field_text: str, storage: tuple[str, str]) -> Matches | None:
    """A request's label and field selector as one predicate; None if both are empty."""
    if not label_text.strip() and not field_text.strip():
        return None
    by_label, by_field = label_selector_from_text(label_text), field_selector_from_text(field_text, storage)
    return lambda obj: by_label(obj.get("metadata", {}).get("labels") or {}) and by_field(obj)
