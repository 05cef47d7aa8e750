"""The notation of the lock: `parse` reads the annotation's text, `render` writes it.

The lock is JSON in an annotation of the DaemonSet. `parse` reads both of kured's forms: a single owner at the top
level, or `maxOwners` and `locks` (pkg/daemonsetlock/daemonsetlock.go at kured 1.17 to 1.23). `render` writes both forms
at once, so that a kured that reads either form sees the lock as held.

Anyone may have written the lock, and the admission policies read it too, with regular expressions. So `parse` reads
the owners as the policies do: each value of a key `nodeID` is an owner, wherever in the text it is. Of repeated keys a
JSON parser knows only the last, and it would not look into objects that careen does not know. A text in which an
expression and a JSON parser could see different owners is `Garbage`, and the policies refuse it.

An entry that cannot be read in full is still a claim: the limit includes it until a person or its node replaces it.
`render` writes its text for people into one escaped string, so that no owner can hide in it. The lock is `Garbage` only
if it cannot be read as a whole.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from careen.core.facts.progress import from_rows, rows_of
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import LONGEST_SENTENCE, fields_of, json_of, short, shown
from careen.core.lock.content import MOST_CLAIMS, UNREADABLE, Entry, Garbage, Instant, LockContent, Overdue
from careen.core.lock.line import Line
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

MANUAL = "manual"
"""The owner that a person writes into kured's lock to stop all reboots, as kured documents: a pause, in both forms."""

FORM = 2
"""The version of the form that `render` writes. kured's form and that of careen's first previews have none."""

OWNER = r'[{,]\s*"nodeID"\s*:\s*"[^"\\]*"'
"""An owner, in valid JSON. It cannot occur inside a string, because a quotation mark there has a backslash before it.
manifests/admission/policies.yaml contains the same expression, and the next."""
ESCAPED = r'[{,]\s*"(?:nodeID"\s*:\s*")?[A-Za-z]*\\u00(?:[46]|[57][0-9aA])'
"""A key or owner in which an ASCII letter is escaped, which no encoder does: `nodeID` or `manual` in disguise."""
NEWER = r'[{,]\s*"form"\s*:\s*(?:[^2\s]|2[^,}\s])'
"""A version of the form that is not `FORM`."""
_BLANK = " \t\n\r"  # JSON's white space; str.strip() without argument removes more

_MOST_NODES = 100_000
"""More nodes than any cluster has: the most waiting nodes that the lock records, because agents compute pauses from
their number."""
_MOST_ENTRIES = 1000
"""So many entries fit into 256 KiB in careen's form, with 200 characters each and hardly a value."""
_UNREAD_ROOM = 16 * 1024
"""So many characters of unreadable entries the lock keeps for people, and of each at most 1,000."""
MOST_UNSETTLED = 50  # rows of at most 500 bytes
_HANDOVER_TTL_NANOSECONDS = 600 * 10**9
"""The TTL of a lock that names waiting nodes but contains no claim; kured too leaves a lock without an owner (`locks:
[]`). Without the TTL, a kured that is installed later would wait for ever for the empty owner."""
_EPOCH = "1970-01-01T00:00:00Z"

_NodeName = Annotated[
    str, Meta(pattern=r"\A(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
]
"""The pattern of Node names: a DNS subdomain (apimachinery's IsDNS1123Subdomain). Any other text could change the path
of a request."""
_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


def parse(content: str | None) -> LockContent | Garbage:
    """The content of the lock annotation. None and blank text are an empty lock."""
    if content is None or not content.strip(_BLANK):
        return LockContent()
    record = json_of(content)
    if record is None and content.strip(_BLANK) != "null":
        return Garbage("the text of the lock is not JSON")
    if not isinstance(record, dict):
        return Garbage("the text of the lock is not a JSON object")
    if _ESCAPED.search(content):
        return Garbage(r"a letter of a key or of a node's name in the lock is written as \u and a number")
    if _NEWER.search(content):
        return Garbage("the form of the lock is of another release of careen")
    if "nodeID" not in record and "locks" not in record:
        return Garbage("the lock has neither nodeID nor locks")
    head, unreadable = fields_of(record, _Head)
    if unreadable:
        return Garbage(_why(unreadable[0], record))
    if len(head.locks) > _MOST_ENTRIES:
        return Garbage(f"the lock has {len(head.locks)} entries, but {_MOST_ENTRIES} at most can be in it")
    return _content(record, head, owners(content))


def owners(text: str) -> tuple[str, ...]:
    """Each owner in the text of the lock, as the admission policies see it."""
    return tuple(found.split('"')[3] for found in _OWNER.findall(text))


_OWNER, _ESCAPED, _NEWER = (re.compile(each, re.ASCII) for each in (OWNER, ESCAPED, NEWER))


def _content(record: dict[str, Any], head: _Head, named: tuple[str, ...]) -> LockContent:
    longest = max(10, min(_UNREAD_ROOM // max(1, len(head.locks)), LONGEST_SENTENCE))
    entries = [_entry(row, named, longest) for row in head.locks]
    if head.node not in ("", MANUAL) and head.node not in {entry.node for entry in entries}:
        # kured's single form, or the two forms disagree and both count
        entries.insert(0, _single(record, named, longest))
    entries += _strays(head, named)
    recorded = min(head.max_owners, MOST_CLAIMS)
    notes, _ = fields_of(record, _Notes)
    return LockContent(
        entries=tuple(dict.fromkeys(entry for entry in _numbered(entries) if entry.node != MANUAL)),
        max_owners=recorded if recorded > 0 else 1 if entries else 0,
        is_paused=MANUAL in named,
        pause_reason=short(_unescaped(head.reason)),
        line=Line(
            names=_plain_names(head.next),
            at=_instant(head.next_at),
            abreast=None if head.abreast is None else _bounded(head.abreast, _MOST_NODES),
            waiting=_bounded(head.waiting, _MOST_NODES),
            passed=_plain_names(head.passed),
        ),
        unsettled=from_rows([json_of(_unescaped(row)) for row in notes.unsettled])[:MOST_UNSETTLED],
        released_at=_instant(notes.released_at),
    )


def _strays(head: _Head, named: tuple[str, ...]) -> list[Entry]:
    """The owners that JSON does not show where owners belong: under a repeated key, or in an unknown object."""
    rows = [row.get("nodeID") for row in head.locks if isinstance(row, dict)]
    shown_names = {head.node, "", MANUAL, UNREADABLE, *(name for name in rows if isinstance(name, str))}
    return [
        replace(_entry({"nodeID": name}, named, LONGEST_SENTENCE), unread=f"another nodeID of the lock: {name}")
        for name in dict.fromkeys(named)
        if name not in shown_names
    ]


def _plain_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Without those that no Node can have."""
    return tuple(name for name in names if _PLAIN.fullmatch(name))


_PLAIN = re.compile(r"[ !#$&-Z^-z|~]*")
"""Printable ASCII without quotation mark, backslash, brackets, braces and percent sign."""
_NOT_PLAIN = re.compile(r"[^ !#$&-Z^-z|~]+")
_BYTES = re.compile(r"(?:%[0-9A-F]{2})+")


def _single(record: dict[str, Any], named: tuple[str, ...], longest: int) -> Entry:
    """The entry of the single owner at the top level of kured's JSON, without the lock's own fields: careen would write
    them back as fields of an unreadable entry."""
    return _entry({key: value for key, value in record.items() if key not in _OF_THE_LOCK}, named, longest)


def _numbered(entries: list[Entry]) -> list[Entry]:
    """With the made-up names `unreadable entry 1`, `unreadable entry 2` …"""
    numbers = itertools.count(1)
    return [replace(entry, node=f"{UNREADABLE} {next(numbers)}") if entry.is_nameless else entry for entry in entries]


def _entry(row: Any, named: tuple[str, ...], longest: int) -> Entry:
    """The entry with the readable fields of a row of `locks`, and the defaults of the others. A name that is not among
    `named`, because it contains an escape, is unreadable. `longest` limits the text that is kept of a row."""
    claim, unreadable = fields_of(row, _Claim)
    notes, _ = fields_of(row, _Notes)
    node = claim.node if claim.node in named else ""
    return Entry(
        node=node or UNREADABLE,
        id=_unescaped(claim.id),
        uid=_unescaped(claim.uid),
        groups=tuple(_unescaped(group) for group in claim.groups),
        boot=_unescaped(claim.boot),
        cordoned=bool(claim.metadata.get("unschedulable")) if claim.cordoned is None else claim.cordoned,
        created="" if claim.created == _EPOCH else _unescaped(claim.created),
        limit=_bounded(claim.limit, MOST_CLAIMS),
        zone=None if claim.zone is None else _unescaped(claim.zone),
        failed="unreadable"
        if "failed" in unreadable
        else _unescaped(claim.failed),  # an unreadable mark of failure still is one
        due=_instant(notes.due),
        overdue=notes.overdue if notes.overdue is not None and _instant(notes.overdue.since) else None,
        unread=short(_unescaped(claim.raw) or ("" if node and not unreadable else json_text(row)), longest),
    )


def _instant(text: str) -> str:
    return text if from_rfc3339(text) is not None else ""


def _bounded(number: int, most: int) -> int:
    return min(max(0, number), most)


def _why(key: str, record: dict[str, Any]) -> str:
    is_list = key in ("next", "passed") and isinstance(record[key], list)
    return f"{key} in the lock is not a list of names" if is_list else f"{key} in the lock is {shown(record[key])}"


class _Head(Value, kw_only=True, rename="camel"):
    """The fields of the lock that careen must understand: if a value has another type, the lock is `Garbage`."""

    locks: tuple[Any, ...] = ()  # Go writes an empty list as null
    node: str = field(default="", name="nodeID")
    max_owners: int = 0
    reason: str = ""
    next: tuple[str, ...] = ()
    next_at: str = ""
    abreast: int | None = None
    waiting: int = 0
    passed: tuple[str, ...] = ()


class _Claim(Value, kw_only=True):
    """The fields of an entry that careen must understand: if a value has another type, the entry is unreadable."""

    node: _NodeName = field(default="", name="nodeID")
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    id: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    boot: str = ""
    cordoned: bool | None = None
    limit: _Int64 = 0
    zone: str | None = None
    failed: str = ""
    raw: str = ""  # what an unreadable entry contained, escaped


class _Notes(Value, kw_only=True, rename="camel"):
    """The optional fields of the lock and its entries: a value of another type counts as missing."""

    due: Instant = ""
    overdue: Overdue | None = None
    released_at: Instant = ""
    unsettled: tuple[str, ...] = ()  # each row as JSON in a text: the policies let in no list in a list


_OF_THE_LOCK = frozenset({*_Head.__struct_encode_fields__, "releasedAt", "unsettled", "form"} - {"nodeID"})


def render(content: LockContent) -> str | None:
    """The annotation's text; None (no annotation) for a lock without claims, pause, named nodes, unsettled workloads
    and `released_at`.

    The text has the form that the admission policies check: no backslash, and no bracket, brace or quotation mark
    inside a string. `nodeID` comes first in its object, and only the lock and the items of `locks` have one."""
    is_kept = bool(content.unsettled or content.released_at)
    if not content.entries and not content.is_paused and not content.line.names and not is_kept:
        return None
    first = content.entries[0] if content.entries else None
    owner = MANUAL if content.is_paused else "" if first is None else _name(first)
    rows = [_row(entry) for entry in content.entries]
    if content.is_paused:
        # A kured with concurrency > 1 reads only `locks` and would start during a pause; a full list stops it.
        rows += [{"nodeID": MANUAL}] * max(1, min(content.max_owners, MOST_CLAIMS) - len(rows))
    record: dict[str, Any] = {
        "nodeID": owner,
        "metadata": {"unschedulable": bool(first and first.cordoned)},
        "created": (first.created if first else content.line.at or content.released_at) or _EPOCH,
        "TTL": 0 if first or content.is_paused else _HANDOVER_TTL_NANOSECONDS,
        "form": FORM,
        "maxOwners": min(max(content.max_owners, 1), MOST_CLAIMS),
        "locks": rows,
    }
    if content.pause_reason:
        record["reason"] = content.pause_reason
    record |= _line_record(content.line)
    if content.unsettled:
        record["unsettled"] = [json_text(row) for row in rows_of(content.unsettled[:MOST_UNSETTLED])]
    if content.released_at:
        record["releasedAt"] = content.released_at
    return json_text(_escaped(record))


def json_text(value: Any) -> str:
    """The value as JSON without white space."""
    return json.dumps(value, separators=(",", ":"))


def _line_record(line: Line) -> dict[str, Any]:
    named = {"next": list(line.names), "nextAt": line.at} if line.names else {}
    return {
        **named,
        **({"abreast": line.abreast} if line.names and line.abreast is not None else {}),
        **({"waiting": line.waiting} if line.waiting else {}),
        **({"passed": list(line.passed)} if line.passed else {}),
    }


def _name(entry: Entry) -> str:
    return UNREADABLE if entry.is_nameless else entry.node


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "nodeID": _name(entry),
        "metadata": {"unschedulable": entry.cordoned},
        "created": entry.created or _EPOCH,
        "TTL": 0,
        "id": entry.id,
        "uid": entry.uid,
        "groups": list(entry.groups),
        "boot": entry.boot,
        # An agent of the previous release must not take the entry for one of kured's: for it, this is unreadable.
        "cordoned": "unread" if entry.unread else entry.cordoned,
        "limit": entry.limit,
        **({} if entry.zone is None else {"zone": entry.zone}),
        **({"failed": entry.failed} if entry.failed else {}),
        **({"due": entry.due} if entry.due else {}),
        **({"overdue": {"phase": entry.overdue.phase, "since": entry.overdue.since}} if entry.overdue else {}),
        **({"raw": entry.unread} if entry.unread else {}),
    }


def _escaped(value: Any) -> Any:
    """The JSON value with `%XX` in its texts, as in a URL, for each byte of a character that is not plain. An agent of
    the previous release keeps these texts; `parse` reads each text unescaped."""
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return _NOT_PLAIN.sub(_as_bytes, value) if isinstance(value, str) else value


def _as_bytes(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode(errors="replace"))


def _unescaped(text: str) -> str:
    return _BYTES.sub(lambda found: bytes.fromhex(found.group().replace("%", "")).decode(errors="replace"), text)
