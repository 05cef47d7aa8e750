"""Reads YAML that people write, within limits. Every failure is a `BadYaml` that says where the problem is.

PyYAML's safe loader is not enough: its constructors raise many kinds of errors (`2026-13-45`, `!!bool maybe`), deep
nesting ends in a RecursionError, and a few aliases of aliases become gigabytes when code walks through them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import yaml

from careen.settings.lists.item import ListElement

_DEEPEST = 40  # settings are three levels deep, a scheduler's configuration about eight; aliases count
_MOST_VALUES = 100_000  # with every alias counted as often as it is used
_LONGEST = 2**17  # characters, which PyYAML reads in a second or two, on the agent's loop
_MOST_DIGITS = 2**63  # no setting is larger, and Python refuses to print numbers with thousands of digits


class BadYaml(ValueError):
    """The message says where, but does not quote the text, which may contain a secret."""


def load(text: str, *, lists_of_mappings: Collection[str] = ()) -> Any:
    """The YAML's value. Lists under the keys `lists_of_mappings` become `ListElement`s. Raises `BadYaml`."""
    kept: dict[str, list[ListElement]] = {}

    def keep(loader: yaml.SafeLoader, root: yaml.Node) -> None:
        for index, (key, value) in enumerate(root.value if isinstance(root, yaml.MappingNode) else ()):
            if key.value in lists_of_mappings and isinstance(value, yaml.SequenceNode):
                kept[key.value] = [_item(loader, each) for each in value.value]
                root.value[index] = (key, yaml.SequenceNode("tag:yaml.org,2002:seq", []))

    value = _load(text, keep)
    return {**value, **kept} if kept else value


def items(text: str) -> list[ListElement]:
    """The elements of a YAML list. Any other text is the only element, an empty one none. Raises `BadYaml`."""
    if isinstance(text, ListElement):
        return [text]
    found: list[ListElement] = []

    def keep(loader: yaml.SafeLoader, root: yaml.Node) -> None:
        nodes = root.value if isinstance(root, yaml.SequenceNode) else [root]
        found.extend(_item(loader, each) for each in nodes)
        root.value = [] if isinstance(root, yaml.CollectionNode) else ""

    _load(text, keep)
    return found


def _item(loader: yaml.SafeLoader, node: yaml.Node) -> ListElement:
    lines = {"": node.start_mark.line + 1}
    if isinstance(node, yaml.MappingNode):
        lines |= {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    value = _as_texts(loader, node)
    return ListElement.of(value if isinstance(value, str) else json.dumps(value), lines)


def _as_texts(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_as_texts(loader, each) for each in node.value]
    if not isinstance(node, yaml.MappingNode):
        return "" if node.tag == "tag:yaml.org,2002:null" else str(node.value)
    loader.flatten_mapping(node)
    return {str(key.value): _as_texts(loader, value) for key, value in node.value}


def _load(text: str, keep: Callable[[yaml.SafeLoader, yaml.Node], None]) -> Any:
    if len(text) > _LONGEST:
        raise BadYaml(f"the text has more than {_LONGEST} characters")
    try:
        _refuse_depth(yaml.SafeLoader(text))
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_weight(node)
        keep(loader, node)
        value = loader.construct_document(node)
        _refuse_numbers(value, set())
    except BadYaml:
        raise
    except yaml.YAMLError as error:
        raise BadYaml(_words(error)) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise BadYaml("a value does not match its YAML type, such as a date that does not exist") from None
    return value


def _refuse_depth(loader: yaml.SafeLoader) -> None:
    """Uses only PyYAML's parser: its later steps are recursive and would fail."""
    depth = 0
    while loader.check_event():
        event = loader.get_event()  # type: ignore[no-untyped-call]
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise BadYaml(f"line {event.start_mark.line + 1}: the values are nested more than {_DEEPEST} deep")


def _refuse_weight(root: yaml.Node) -> None:
    """Refuses keys that appear twice, too many values and deep nesting. An alias counts at each use, because code that
    walks through the result visits it each time."""
    known: dict[int, tuple[int, int]] = {}
    above: set[int] = set()

    def weigh(node: yaml.Node) -> tuple[int, int]:
        if id(node) in above:
            raise BadYaml(f"line {node.start_mark.line + 1}: an alias makes the value contain itself")
        if id(node) not in known:
            above.add(id(node))
            _refuse_twice(node)
            inside = [weigh(each) for each in _children(node)]
            above.remove(id(node))
            known[id(node)] = (
                1 + sum(values for values, _ in inside),
                1 + max((depth for _, depth in inside), default=0),
            )
        values, depth = known[id(node)]
        if values > _MOST_VALUES or depth > _DEEPEST + 1:
            raise BadYaml(
                f"line {node.start_mark.line + 1}: aliases make the text more than {_MOST_VALUES} values long, or nest "
                f"it more than {_DEEPEST} deep"
            )
        return values, depth

    weigh(root)


def _refuse_twice(node: yaml.Node) -> None:
    """Of two equal keys one would be lost in silence."""
    seen: set[str] = set()
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise BadYaml(f"line {key.start_mark.line + 1}: the key {key.value[:80]} appears twice")
            seen.add(key.value)


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return (each for pair in node.value for each in pair)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _refuse_numbers(value: Any, seen: set[int]) -> None:
    """Refuses numbers that no setting can have and that would raise errors later: infinite, NaN, or with thousands of
    digits."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadYaml("a number is infinite or NaN")
    if isinstance(value, int) and abs(value) >= _MOST_DIGITS:
        raise BadYaml("a number has too many digits")
    if isinstance(value, dict | list | set | tuple) and id(value) not in seen:
        seen.add(id(value))
        for each in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _refuse_numbers(each, seen)


def _words(error: yaml.YAMLError) -> str:
    """Where the error is, and the parser's explanation; not the exception's text, which quotes the line."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.position + 1} is not allowed in YAML"
    mark = getattr(error, "problem_mark", None)
    problem = re.sub(r"'[^']{2,}'|\"[^\"]{2,}\"", "…", str(getattr(error, "problem", None) or ""))
    return (
        ": ".join(part for part in (f"line {mark.line + 1}, column {mark.column + 1}" if mark else "", problem) if part)
        or "the YAML parser gives no reason"
    )
