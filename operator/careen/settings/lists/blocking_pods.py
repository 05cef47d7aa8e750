"""One entry of `--blocking-pods`: which pods prevent the reboot of which nodes."""

from __future__ import annotations

from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.core.facts.selectors import Selector
from careen.settings import kinds
from careen.settings.lists.fields import ListFieldError, fields_of
from scheduler_core.values import Value

FIELDS = ("name", "pods", "annotations", "lost", "namespaces", "scope", "group", "longest")
_MOST_NAMESPACES = _MOST_ANNOTATIONS = 50
_EVERY_POD = Selector("")


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
    annotations = fields.several("annotations", _annotation)
    if len(annotations) > _MOST_ANNOTATIONS:
        raise ListFieldError("annotations", f"the list has more than {_MOST_ANNOTATIONS} entries")
    is_lost = fields.one("lost", kinds.boolean, False)
    if is_lost and ("pods" in fields or annotations or scope is not BlockingScope.NODE):
        raise ListFieldError("lost", "`lost` selects the pods by itself, and only for their own node")
    if not (is_lost or "pods" in fields or annotations):
        raise ListFieldError("pods", "the entry selects no pods: give `pods`, `annotations` or `lost: true`")
    namespaces = fields.several("namespaces", kinds.namespace)
    if len(namespaces) > _MOST_NAMESPACES:
        raise ListFieldError("namespaces", f"the list has more than {_MOST_NAMESPACES} entries")
    rule = BlockingPods(
        name=fields.one("name", kinds.short_name),
        selector=fields.one("pods", kinds.set_selector, _EVERY_POD),
        annotations=annotations,
        is_lost=is_lost,
        namespaces=tuple(sorted(set(namespaces))),
        scope=scope,
        group=fields.one("group", kinds.label_key, ""),
        longest_seconds=fields.one("longest", kinds.deadline, 0.0),
    )
    return ConfiguredBlocker(rule=rule, text=fields.text)


def _annotation(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise ValueError("expected KEY=VALUE, such as karpenter.sh/do-not-disrupt=true")
    return kinds.label_key(key.strip()), value.strip()
