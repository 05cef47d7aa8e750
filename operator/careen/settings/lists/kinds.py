"""The kinds of settings with lists of mappings. A parser is imported only if its setting is given, because most agents
use none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from careen.settings.kinds import ValueKind, one_per_line
from careen.settings.lists import request_headers, silence_matchers

if TYPE_CHECKING:
    from careen.settings.lists.blocking_pods import ConfiguredBlocker
    from careen.settings.lists.health_queries import ConfiguredQuery
    from careen.settings.lists.windows import ConfiguredWindow


def _items(text: str) -> list[str]:
    from careen.settings import yaml_text

    return list(yaml_text.items(text))


def _window(text: str) -> ConfiguredWindow:
    from careen.settings.lists.windows import parse

    return parse(text)


def _written(value: Any) -> str:
    return str(value.text)


def _query(text: str) -> ConfiguredQuery:
    from careen.settings.lists.health_queries import parse

    return parse(text)


def _blocker(text: str) -> ConfiguredBlocker:
    from careen.settings.lists.blocking_pods import parse

    return parse(text)


def _kind(parse: Callable[[str], Any]) -> ValueKind:
    return ValueKind(
        metavar="YAML",
        parse=parse,
        many=True,
        split=_items,
        is_mapping=True,
        show=_written,
        may_begin_with_a_quote=True,
    )


WINDOWS = _kind(_window)
HEALTH_QUERIES = _kind(_query)
SILENCES = ValueKind(metavar="MATCHERS", parse=silence_matchers.matchers, many=True, split=one_per_line, show=_written)
HEADERS = ValueKind(
    metavar="HEADER", parse=request_headers.header, many=True, split=one_per_line, show=request_headers.written
)
BLOCKING_PODS = _kind(_blocker)
