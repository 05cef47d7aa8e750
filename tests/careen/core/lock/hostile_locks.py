"""Draws texts that somebody might write into the lock so that its readers disagree: repeated keys, nested owners, keys
and names in escapes, other white space, numbers, trailing data, deep nesting, huge strings, two top-level values."""

from __future__ import annotations

import json
from collections.abc import Collection
from random import Random

from careen.core.lock import notation
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line

NAMES = ("n00", "n01", "n02", "n00.a", "manual", "unreadable entry", "")
_TEXTS = (
    *NAMES,
    "../pods",
    "N00",
    "a b",
    '","nodeID":"manual',
    '{"nodeID":"n01"}',
    "}",
    "x,",
    "ü",
    "\u2028",
    "%22",
    "2",
    "locks",
    "nodeID",
)
_KEYS = ("nodeID", "nodeID", "nodeID", "locks", "was", "metadata", "overdue", "id", "reason", "next", "maxOwners",
         "form", "failed", "groups", "NodeID", "nodeid", "LOCKS")  # fmt: skip
_SPACE = ("", "", "", "", "", "", " ", "\n", "\t ", "\r\n", "\u00a0", "\f", "\v", "\u2003", "/**/")
_PIECES = ('"nodeID":"manual"', '"nodeID":"n01"', '"nodeID":""', ',"nodeID":"manual"', '{"nodeID":"manual"},',
           '"was":{"nodeID":"n00"},', '"locks":[],', '"locks":[{"nodeID":"n01"}],', '"form":3', '"form":2,', "{", "}",
           "[", "]", ",", '"', "\\", ":", "null", "\\u006e", "\\u0022", " ", "\u00a0", "\ufeff", "1e400", '"x":', "{},",
           "5,")  # fmt: skip


def hostile_lock(chance: Random) -> str:
    """A text. Most are JSON with tricks, or careen's own form with something changed."""
    kind = chance.random()
    if kind < 0.45:
        text = _object(chance, 0)
    elif kind < 0.9:
        text = canonical_lock(chance)
    else:
        text = chance.choice(("", " ", "\u00a0", "null", "[]", "7", '"nodeID"', '{"nodeID":"n00"}{"nodeID":"manual"}'))
    for _ in range(chance.choice((0, 0, 1, 1, 2, 4)) if kind < 0.9 else 0):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(_PIECES) + text[at + chance.choice((0, 0, 1, 3)) :]
    trick = chance.random()
    if trick < 0.03:
        text += chance.choice(("x", "{}", '{"nodeID":"n00"}', "\x00", "]"))
    elif trick < 0.06:
        text = text.replace("{", '{"x":"' + "y" * 20_000 + '",', 1)
    elif trick < 0.09:
        text = text.replace("{", '{"x":' + "[" * 60 + '{"nodeID":"manual"}' + "]" * 60 + ",", 1)
    return text


def canonical_lock(chance: Random) -> str:
    """A text in the form that careen writes."""
    rows = tuple(dict.fromkeys(_entry(chance) for _ in range(chance.randrange(4))))
    content = LockContent(
        entries=rows,
        max_owners=chance.choice((0, 1, 3)),
        is_paused=chance.random() < 0.3,
        pause_reason=chance.choice(("", 'für "db": {"nodeID":"n01"}', "x\\", "[{", "locks", "nodeID")),
        line=Line(names=("n02", "locks"), at="2026-03-04T12:00:00Z", waiting=2) if chance.random() < 0.4 else Line(),
    )
    return notation.render(content) or ""


def _entry(chance: Random) -> Entry:
    node, foreign = chance.choice(("n00", "n01", "n02", "n00.a", "unreadable entry 1")), '{"nodeID":"manual","x":[{}]}'
    return Entry(
        node=node,
        id=chance.choice(("c1", "", 'a"b', "ü")),
        groups=chance.choice(((), ("zone=a",), ("locks",), ("selector:app in (a,b)",))),
        cordoned=chance.random() < 0.3,
        zone=chance.choice((None, "", "a", "nodeid")),
        failed=chance.choice(("", "", "never-ready")),
        unread=foreign if node.startswith("unread") else chance.choice(("", "", foreign)),
    )


def _object(chance: Random, depth: int) -> str:
    space = lambda: chance.choice(_SPACE)  # noqa: E731
    members = [
        f"{space()}{_spelled(chance, key)}{space()}:{space()}{_value(chance, key, depth)}"
        for key in (chance.choice(_KEYS) for _ in range(chance.randrange(5 - min(depth, 3))))
    ]
    return f"{{{','.join(members)}{space()}}}"


def _value(chance: Random, key: str, depth: int) -> str:
    if key == "nodeID" and chance.random() < 0.8:
        return _spelled(chance, chance.choice(NAMES))
    draw = chance.random()
    if depth < 4 and (draw < 0.25 or (key == "locks" and draw < 0.9)):
        items = (
            _object(chance, depth + 1) if chance.random() < 0.8 else _value(chance, "", depth + 1)
            for _ in range(chance.randrange(4))
        )
        return f"[{','.join(items)}]"
    if depth < 4 and draw < 0.5:
        return _object(chance, depth + 1)
    if key == "form" and draw < 0.8:
        return chance.choice(("2", "2", "3", "22", "2.0", '"2"', "null"))
    if draw < 0.7:
        return chance.choice(("0", "-1", "1e3", "1e400", "01", "true", "null", "9" * 30, "NaN"))
    return _spelled(chance, chance.choice(_TEXTS))


def _spelled(chance: Random, text: str) -> str:
    """A JSON string, sometimes with some of its characters escaped."""
    if chance.random() < 0.85:
        return json.dumps(text, ensure_ascii=chance.random() < 0.5)
    return '"' + "".join(_letter(chance, each) for each in text) + '"'


def _letter(chance: Random, letter: str) -> str:
    code = f"{ord(letter):04x}"
    escaped = f"\\u{code.upper() if chance.random() < 0.5 else code}"
    return escaped if letter in '"\\' or ord(letter) < 32 or chance.random() < 0.3 else letter


_PARTS = (*'{}[],:"\\0123-.eE+ \n\t\x07é', "null", "true", '"x":', '"a"', ',"b":1', "{}", "[]", "[{", "}]", "\\u12",
          '"nodeID":""', "\\u00e9", "\\ud83d", "\\udca5", "01", "1e5", "9" * 25, '"next":5,', '"next":["a",{}],',
          '"passed":[1],', '"reason":7,', '"locks":[]', '"locks":[1],', '"maxOwners":"x",', '"waiting":null,',
          '"abreast":{},', '"form":2,')  # fmt: skip


def broken_lock(chance: Random, texts: Collection[str]) -> str:
    """One of these texts or a text in careen's form, with one to three parts taken out, put in or repeated."""
    text = chance.choice((canonical_lock(chance), *texts))
    for _ in range(chance.choice((1, 1, 2, 3))):
        first, last = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        kind = chance.random()
        if kind < 0.3:
            text = text[:first] + text[first + chance.choice((1, 1, 2, 5)) :]
        elif kind < 0.9:
            text = text[:first] + chance.choice(_PARTS) + text[first + chance.choice((0, 0, 1)) :]
        else:
            text = text[:last] + text[first:last] + text[last:]
    return text
