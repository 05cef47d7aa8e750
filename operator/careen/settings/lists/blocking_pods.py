"""One entry of `--blocking-pods`: which pods prevent the reboot of which nodes."""

from __future__ import annotations

from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.settings import kinds
from careen.settings.lists.fields import ListFieldError, fields_of
from scheduler_core.values import Value

FIELDS = ("name", "pods", "namespaces", "scope", "group", "longest")
_MOST_NAMESPACES = 50


class ConfiguredBlocker(Value, kw_only=True):
    """An entry of `--blocking-pods` with its original text."""

    rule: BlockingPods
    text: str


def parse(text: str) -> ConfiguredBlocker:
    """Raises `ListFieldError`."""
    fields = fields_of(text, FIELDS)
    scope = BlockingScope(fields.one("scope", kinds.one_of(*BlockingScope), BlockingScope.NODE.value))
    if (scope is BlockingScope.GROUP) is not ("group" in fields):
        raise ListFieldError("group", "the field `group` and `scope: group` belong together: give both, or neither")
    namespaces = fields.several("namespaces", kinds.namespace)
    if len(namespaces) > _MOST_NAMESPACES:
        raise ListFieldError("namespaces", f"the list has more than {_MOST_NAMESPACES} entries")
    rule = BlockingPods(
        name=fields.one("name", kinds.short_name),
        selector=fields.one("pods", kinds.set_selector),
        namespaces=tuple(sorted(set(namespaces))),
        scope=scope,
        group=fields.one("group", kinds.label_key, ""),
        longest_seconds=fields.one("longest", kinds.deadline, 0.0),
    )
    return ConfiguredBlocker(rule=rule, text=fields.text)
