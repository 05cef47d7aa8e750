"""Label selectors as the text of list requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

TEMPLATE_HASH = "pod-template-hash"
"""The label that a Deployment gives to the pods of each of its ReplicaSets, so that it alone selects them."""

_LONGEST = 300  # the record has up to two hundred rows, in annotations of at most 256 KiB


def selector_text(selector: dict[str, Any] | None) -> str:
    """A workload's selector; "" if it has none, or one that careen does not understand."""
    try:
        text = _text(selector or {})
    except (TypeError, KeyError, AttributeError):
        return ""
    return text if len(text) <= _LONGEST else ""


def _text(selector: dict[str, Any]) -> str:
    is_plain = not selector.keys() & {"matchLabels", "matchExpressions"}  # a ReplicationController's
    labels = selector if is_plain else selector.get("matchLabels") or {}
    if TEMPLATE_HASH in labels:
        return f"{TEMPLATE_HASH}={labels[TEMPLATE_HASH]}"
    terms = [f"{key}={value}" for key, value in sorted(labels.items())]
    for each in () if is_plain else selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(each.get("values") or ())
        written = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
        terms.append({**written, "Exists": key, "DoesNotExist": f"!{key}"}[each["operator"]])
    return ",".join(terms)


def common(labels: Iterable[dict[str, str]]) -> str:
    """The labels that all these pods share, without those of one template, so that it also selects their successors; ""
    if they share none."""
    shared = set.intersection(*map(set, (each.items() for each in labels))) if labels else set()
    lasting = sorted((key, value) for key, value in shared if not any(word in key for word in _OF_A_TEMPLATE))
    text = ",".join(f"{key}={value}" for key, value in lasting)
    return text if len(text) <= _LONGEST else ""


_OF_A_TEMPLATE = ("hash", "revision", "version", "role")


def few_requests(selectors: Iterable[str]) -> tuple[str, ...]:
    """The same pods with fewer requests: `a=1` and `a=2` become `a in (1,2)`."""
    values: dict[str, set[str]] = defaultdict(set)
    others: set[str] = set()
    for selector in selectors:
        key, equals, value = selector.partition("=")
        if equals and not set(selector) & set(",!( "):
            values[key].add(value)
        else:
            others.add(selector)
    joined = (
        f"{key}={min(found)}" if len(found) == 1 else f"{key} in ({','.join(sorted(found))})"
        for key, found in sorted(values.items())
    )
    return (*joined, *sorted(others))
