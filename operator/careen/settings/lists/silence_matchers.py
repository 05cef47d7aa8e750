"""Matchers of one silence in Alertmanager, as `--alertmanager-silence-matchers` writes them."""

from __future__ import annotations

import re
from typing import Any

from scheduler_core.values import Value

NODE = "$NODE"
"""The placeholder for the node's name in the value of a matcher."""

_MATCHER = r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s,{}]+))\s*(,|$)'


class Matchers(Value):
    """The matchers of one silence: label, operator and value of each, with `$NODE` not yet replaced."""

    text: str
    each: tuple[tuple[str, str, str], ...]

    def of_node(self, node: str) -> list[dict[str, Any]]:
        """The matchers in the form of Alertmanager's API."""
        return [
            {
                "name": label,
                "value": value.replace(NODE, re.escape(node) if "~" in operator else node),
                "isRegex": "~" in operator,
                "isEqual": not operator.startswith("!"),
            }
            for label, operator, value in self.each
        ]


def matchers(text: str) -> Matchers:
    """The matchers in the text: `node="$NODE"`, or several separated by commas, with or without braces.

    Raises ValueError for another text, and for a silence that would not be for this node alone."""
    inside = text.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1]
    matcher = re.compile(_MATCHER)  # few write their own
    found, at = list[tuple[str, str, str]](), 0
    while (match := matcher.match(inside, at)) is not None and at < len(inside):
        value = match[4] if match[3] is None else re.sub(r"\\(.)", r"\1", match[3])
        found.append((match[1], match[2], value))
        at = match.end()
    if at < len(inside) or not found:
        raise ValueError('expected matchers such as node="$NODE" or {instance=~"$NODE:.*",severity!="critical"}')
    for _, operator, value in found:
        if "~" in operator:
            _check_pattern(value)
    if not any(_is_of_one(operator, value) for _, operator, value in found):
        raise ValueError("expected a matcher with $NODE: without one the alerts of every node would be silenced")
    return Matchers(text.strip(), tuple(found))


def _is_of_one(operator: str, value: str) -> bool:
    """Whether it matches one node: `$NODE.*` of n1 also matches n10, and `$NODE|` whatever lacks the label."""
    if NODE not in value or operator.startswith("!"):
        return False
    return operator == "=" or not any(
        re.fullmatch(value.replace(NODE, "n1"), other) for other in ("", ":9100", "n10", "n10:9100", "m2", "m2:9100")
    )


def _check_pattern(value: str) -> None:
    try:
        re.compile(value.replace(NODE, "n"))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a regular expression: {error}") from None


DEFAULT = (
    Matchers('node="$NODE"', (("node", "=", NODE),)),
    Matchers('instance=~"$NODE(:[0-9]+)?"', (("instance", "=~", "$NODE(:[0-9]+)?"),)),
)
"""The node label of kube-state-metrics, and exporters whose instance label is the node's name."""
