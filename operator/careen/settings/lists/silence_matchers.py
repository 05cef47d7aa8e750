"""One value of `--alertmanager-silence-matchers`: the matchers of one silence in Alertmanager."""

from __future__ import annotations

import re
from typing import Any

from careen.settings.go_regexp import checked
from scheduler_core.values import Value

NODE = "$NODE"
"""The node's name in the value of a matcher."""

_MATCHER = r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s,{}]+))\s*(,|$)'


class Matchers(Value):
    """One silence: label, operator and value of each matcher, with the placeholder `$NODE`."""

    text: str
    each: tuple[tuple[str, str, str], ...]

    def of_node(self, node: str) -> list[dict[str, Any]]:
        """In the form of Alertmanager's API."""
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
    """Such as `node="$NODE"`; several with commas, with or without braces.

    Raises ValueError for a malformed text, or if the silence would match the alerts of other nodes.
    """
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
            checked(value.replace(NODE, "n"))
    if not any(_is_of_one(operator, value) for _, operator, value in found):
        raise ValueError(
            "expected at least one matcher with $NODE: otherwise the alerts of every node would be silenced"
        )
    return Matchers(text.strip(), tuple(found))


def _is_of_one(operator: str, value: str) -> bool:
    """Only a single node's alerts. For n1, `$NODE.*` also selects n10's, and `$NODE|` those without the label."""
    if NODE not in value or operator.startswith("!"):
        return False
    return operator == "=" or not any(
        checked(value.replace(NODE, "n1")).fullmatch(other)
        for other in ("", ":9100", "n10", "n10:9100", "m2", "m2:9100")
    )


DEFAULT = (
    Matchers('node="$NODE"', (("node", "=", NODE),)),
    Matchers('instance=~"$NODE(:[0-9]+)?"', (("instance", "=~", "$NODE(:[0-9]+)?"),)),
)
"""Alerts whose label `node` is the node's name, or whose `instance` is that name with or without a port."""
