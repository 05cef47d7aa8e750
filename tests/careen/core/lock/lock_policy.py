"""What the policies `careen-lock-only` and `careen-evict-with-claim` say about texts of the lock.

Each expression of the manifest stands beside its translation to Python; `test_one_grammar.py` checks that the manifest
contains exactly these expressions. The regular expressions are evaluated by RE2, as in the API server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import re2
import yaml

FILE = Path(__file__).parents[4] / "manifests" / "admission" / "policies.yaml"
_POLICIES = {
    each["metadata"]["name"]: each["spec"]
    for each in yaml.safe_load_all(FILE.read_text())
    if each and each["kind"] == "ValidatingAdmissionPolicy"
}
LOCK_ONLY, EVICT = _POLICIES["careen-lock-only"], _POLICIES["careen-evict-with-claim"]

Known = Mapping[str, Any]


def expressions(policy: Mapping[str, Any]) -> dict[str, str]:
    """The variables' expressions by name, and the validations' expressions by the beginning of their messages."""
    named = {each["name"]: each["expression"] for each in policy["variables"]}
    return named | {_title(each["message"]): each["expression"] for each in policy["validations"]}


def _title(message: str) -> str:
    return message.removeprefix("careen's agent may ").split(",")[0].split(":")[0]


def literals(expression: str) -> list[str]:
    """The raw strings in a CEL expression."""
    return re.findall(r"r'([^']*)'", expression)


def _matches(text: str, pattern: str) -> bool:
    return re2.search(pattern, text) is not None


def _count(text: str, pattern: str) -> int:
    return len(re2.findall(pattern, text))


def _owners(text: str, pattern: str) -> list[str]:
    return [found.split('"')[3] for found in re2.findall(pattern, text)]


def _others(owners: list[str], node: str) -> list[str]:
    return [owner for owner in owners if owner not in (node, "", "unreadable entry", "manual")]


_ODD = r"""[{,]\s*"(?:nodeID"\s*:\s*")?[A-Za-z]*\\u00(?:[46]|[57][0-9aA])|[{,]\s*"form"\s*:\s*(?:[^2\s]|2[^,}\s])"""

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|[-\w]+)"""
_OBJECT = rf"""\{{(?:"\w+":(?:"(?:[^"\\]|\\.)*"|[-\w]+|\{{(?:"\w+":{_VALUE},?)*\}}|\[(?:{_VALUE},?)*\]),?)*\}}"""
_TOKENS = (
    r"""^(?:("\w+":)?(?:\{"\w+":|\[)*(?:"(?:[^"\\]|\\.)*"|true|false|null|-?(?:0|[1-9]\d{0,17})|\{\}|\[\])[}\]]*,)*$"""
)
_ESCAPE = r"""\\(?:ud[89ab]..\\u.{4}|u.{4}|.)"""
_ESCAPES = (
    r"""^(?:\\(?:["\\/bfnrt]|u(?:[0-9a-ce-f][0-9a-f]|d[0-7])[0-9a-f]{2}|"""
    r"""ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})(?: |$))*$"""
)
_ODD_HEAD = (
    r""""(?:nodeID|reason|nextAt)":[^"]|"(?:next|passed)":(?:[^\[]|\[(?:"[^"]*",?)*[^",\]])|"""
    r""""(?:maxOwners|waiting|abreast)":[^-\d]|"locks":(?:[^\[n]|\[[^\]])"""
)

READING: dict[str, tuple[str, Callable[[Known], Any]]] = {
    "owner": (
        r"""r'[{,]\s*"nodeID"\s*:\s*"[^"\\]*"'""",
        lambda _: r"""[{,]\s*"nodeID"\s*:\s*"[^"\\]*\"""",
    ),
    "odd": (f"r'{_ODD}'", lambda _: _ODD),
    "isOddBefore": (
        "variables.textBefore.matches(variables.odd)",
        lambda given: _matches(given["textBefore"], given["odd"]),
    ),
    "isOddAfter": (
        "variables.textAfter.matches(variables.odd)",
        lambda given: _matches(given["textAfter"], given["odd"]),
    ),
    "ownersBefore": (
        """variables.textBefore.findAll(variables.owner).map(each, each.split('"')[3])""",
        lambda given: _owners(given["textBefore"], given["owner"]),
    ),
    "ownersAfter": (
        """variables.textAfter.findAll(variables.owner).map(each, each.split('"')[3])""",
        lambda given: _owners(given["textAfter"], given["owner"]),
    ),
    "placed": (
        r"""variables.textAfter.findAll(r'(?:^|"locks"\s*:\s*\[|\}\s*,)\s*\{\s*"nodeID"\s*:\s*"[^"\\]*"').size()""",
        lambda given: _count(given["textAfter"], r'(?:^|"locks"\s*:\s*\[|\}\s*,)\s*\{\s*"nodeID"\s*:\s*"[^"\\]*"'),
    ),
    "isListPlaced": (
        (
            r"""variables.textAfter.findAll(r'(?i)"locks"\s*:').size() == 0 || """
            r"""(variables.textAfter.findAll(r'(?i)"locks"\s*:').size() == 1 && """
            r"""variables.textAfter.matches(r'^\s*\{[^{}]*(?:\{[^{}]*\}[^{}]*)?"locks"\s*:'))"""
        ),
        lambda given: (
            _count(given["textAfter"], r'(?i)"locks"\s*:') == 0
            or (
                _count(given["textAfter"], r'(?i)"locks"\s*:') == 1
                and _matches(given["textAfter"], r'^\s*\{[^{}]*(?:\{[^{}]*\}[^{}]*)?"locks"\s*:')
            )
        ),
    ),
    "areListsFlat": (
        (
            r"""variables.textAfter.findAll(r'\[\s*[\[{]').size() == """
            r"""variables.textAfter.findAll(r'"locks"\s*:\s*\[\s*\{').size() && """
            r"""!variables.textAfter.matches(r'[^}\s]\s*,\s*\{')"""
        ),
        lambda given: (
            _count(given["textAfter"], r"\[\s*[\[{]") == _count(given["textAfter"], r'"locks"\s*:\s*\[\s*\{')
            and not _matches(given["textAfter"], r"[^}\s]\s*,\s*\{")
        ),
    ),
    "areTokensPlaced": (
        f"(variables.textAfter + ',').matches(r'{_TOKENS}')",
        lambda given: _matches(given["textAfter"] + ",", _TOKENS),
    ),
    "areEscapesKnown": (
        (
            rf"!variables.textAfter.matches(r'[\x00-\x1f]') && variables.textAfter.findAll(r'{_ESCAPE}').join(' ')"
            f".matches(r'{_ESCAPES}')"
        ),
        lambda given: (
            not _matches(given["textAfter"], r"[\x00-\x1f]")
            and _matches(" ".join(re2.findall(_ESCAPE, given["textAfter"])), _ESCAPES)
        ),
    ),
    "parts": (
        """variables.textAfter.split('"locks":[{', 2)""",
        lambda given: given["textAfter"].split('"locks":[{', 1),
    ),
    "rest": (
        "variables.parts.size() == 2 ? variables.parts[1].split('}]', 2) : ['', '']",
        lambda given: given["parts"][1].split("}]", 1) if len(given["parts"]) == 2 else ["", ""],
    ),
    "head": (
        (
            """variables.parts.size() == 1 ? variables.textAfter : variables.parts[0] + '"locks":[]' + """
            "(variables.rest.size() == 2 ? variables.rest[1] : '?')"
        ),
        lambda given: (
            given["textAfter"]
            if len(given["parts"]) == 1
            else given["parts"][0] + '"locks":[]' + (given["rest"][1] if len(given["rest"]) == 2 else "?")
        ),
    ),
    "items": (
        "variables.parts.size() == 1 ? '' : '{' + variables.rest[0] + '}'",
        lambda given: "" if len(given["parts"]) == 1 else "{" + given["rest"][0] + "}",
    ),
    "areBracketsPaired": (
        rf"variables.head.matches(r'^{_OBJECT}$') && variables.items.matches(r'^(?:{_OBJECT},?)*$')",
        lambda given: _matches(given["head"], f"^{_OBJECT}$") and _matches(given["items"], f"^(?:{_OBJECT},?)*$"),
    ),
    "isHeadOdd": (f"variables.head.matches(r'{_ODD_HEAD}')", lambda given: _matches(given["head"], _ODD_HEAD)),
    "othersBefore": (
        "variables.ownersBefore.filter(owner, !(owner in [variables.node, '', 'unreadable entry', 'manual']))",
        lambda given: _others(given["ownersBefore"], given["node"]),
    ),
    "othersAfter": (
        "variables.ownersAfter.filter(owner, !(owner in [variables.node, '', 'unreadable entry', 'manual']))",
        lambda given: _others(given["ownersAfter"], given["node"]),
    ),
}
"""How the policy `careen-lock-only` reads `textBefore` and `textAfter` with a token of `node`."""

VALIDATIONS: dict[str, tuple[str, Callable[[Known], bool]]] = {
    "take a claim for the Node it runs on": (
        (
            "variables.othersAfter == variables.othersBefore || "
            "variables.othersAfter.all(owner, owner in variables.othersBefore)"
        ),
        lambda given: set(given["othersAfter"]) <= set(given["othersBefore"]),
    ),
    "neither set nor end a pause of the lock": (
        "('manual' in variables.ownersAfter) == ('manual' in variables.ownersBefore)",
        lambda given: ("manual" in given["ownersAfter"]) == ("manual" in given["ownersBefore"]),
    ),
    "write the lock only in a form that all its readers read alike": (
        (
            r"variables.textAfter.matches(r'^\s*(?:\{|$)') && !variables.isOddAfter && variables.isListPlaced && "
            r"""variables.areListsFlat && variables.textAfter.findAll(r'(?i)"nodeid"\s*:').size() == variables.placed"""
        ),
        lambda given: (
            _matches(given["textAfter"], r"^\s*(?:\{|$)")
            and not given["isOddAfter"]
            and given["isListPlaced"]
            and given["areListsFlat"]
            and _count(given["textAfter"], r'(?i)"nodeid"\s*:') == given["placed"]
        ),
    ),
    "write the lock only as JSON that every agent can read": (
        (
            "variables.textAfter == '' || (variables.areTokensPlaced && variables.areEscapesKnown && "
            "variables.areBracketsPaired && !variables.isHeadOdd && (variables.placed > 0 || "
            """variables.parts.size() == 2 || variables.head.contains('"locks":')) && """
            r"variables.items.findAll(r'\},\{').size() < 1000)"
        ),
        lambda given: (
            not given["textAfter"]
            or (
                given["areTokensPlaced"]
                and given["areEscapesKnown"]
                and given["areBracketsPaired"]
                and not given["isHeadOdd"]
                and (given["placed"] > 0 or len(given["parts"]) == 2 or '"locks":' in given["head"])
                and _count(given["items"], r"\},\{") < 1000
            )
        ),
    ),
    "not replace a lock that no agent can read": (
        r"variables.textBefore.matches(r'^\s*(?:\{|$)') && !variables.isOddBefore",
        lambda given: _matches(given["textBefore"], r"^\s*(?:\{|$)") and not given["isOddBefore"],
    ),
}
EVICTING: dict[str, str] = {
    "odd": f"r'{_ODD}'",
    "claim": r"""r'[{,]\s*"nodeID"\s*:\s*"' + variables.node.replace('.', '[.]') + '"'""",
    "evict only while its Node holds a claim in the lock": (
        "request.?dryRun.orValue(false) || "
        "(variables.lock.matches(variables.claim) && !variables.lock.matches(variables.odd))"
    ),
}


def reading(before: str | None, after: str | None, node: str) -> dict[str, Any]:
    """The policy's variables for a change of the lock with a token of this node."""
    given: dict[str, Any] = {"textBefore": before or "", "textAfter": after or "", "node": node}
    for name, (_, value) in READING.items():
        given[name] = value(given)
    return given


def refusal(before: str | None, after: str | None, node: str) -> str:
    """The title of the first validation that refuses the change; "" if the policy lets it in."""
    given = reading(before, after, node)
    return next((title for title, (_, holds) in VALIDATIONS.items() if not holds(given)), "")


def may_evict(lock: str | None, node: str) -> bool:
    """Whether the policy lets the agent of this node evict while the lock has this text."""
    text, name = lock or "", node.replace(".", "[.]")
    return _matches(text, rf'[{{,]\s*"nodeID"\s*:\s*"{name}"') and not _matches(text, _ODD)
