"""The notation of the lock: `parse` reads the annotation's text, `render` writes it.

The lock is JSON in an annotation of the DaemonSet. `parse` reads both of kured's forms: a single owner at the top
level, or `maxOwners` and `locks` (pkg/daemonsetlock/daemonsetlock.go at kured 1.17 to 1.23). `render` writes both forms
at once, so that a kured that reads either form sees the lock as held.

Anyone may have written the lock. An entry that cannot be read in full is still a claim: the limit includes it, and
careen writes it back unchanged until a person or its node replaces it. The lock is `Garbage` only if it cannot be read
as a whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from careen.core.facts.progress import from_rows, rows_of
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import fields_of, json_of, short, shown
from careen.core.lock.content import UNREADABLE, Entry, Garbage, Instant, LockContent, Overdue
from careen.core.lock.line import Line
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

MANUAL = "manual"
"""The owner that a person writes into kured's lock to stop all reboots, as kured documents: a pause, in both forms."""

_MOST_NODES = 100_000
"""More nodes than any cluster has: the most waiting nodes that the lock records, because agents compute pauses from
their number."""
_MOST_CLAIMS = 1000
"""The greatest number of claims that the lock records as its limit, and the most rows that fill the list `locks` of a
paused lock: each row takes about a hundred bytes of the 256 KiB that an object's annotations may have."""
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
    if content is None or not content.strip():
        return LockContent()
    record = json_of(content)
    if record is None and content.strip() != "null":
        return Garbage("the text of the lock is not JSON")
    if not isinstance(record, dict):
        return Garbage("the text of the lock is not a JSON object")
    if "nodeID" not in record and "locks" not in record:
        return Garbage("the lock has neither nodeID nor locks")
    head, unreadable = fields_of(record, _Head)
    return _content(record, head) if not unreadable else Garbage(_why(unreadable[0], record))


def _content(record: dict[str, Any], head: _Head) -> LockContent:
    entries = [_entry(row) for row in head.locks]
    if head.node not in ("", MANUAL) and head.node not in {entry.node for entry in entries}:
        entries.insert(0, _single(record))  # kured's single form, or the two forms disagree and both count
    recorded = min(head.max_owners, _MOST_CLAIMS)
    notes, _ = fields_of(record, _Notes)
    return LockContent(
        entries=tuple(dict.fromkeys(entry for entry in _numbered(entries) if entry.node != MANUAL)),
        max_owners=recorded if recorded > 0 else 1 if entries else 0,
        is_paused=head.node == MANUAL or any(entry.node == MANUAL for entry in entries),
        pause_reason=short(head.reason),
        line=Line(
            names=head.next,
            at=head.next_at,
            abreast=None if head.abreast is None else _bounded(head.abreast, _MOST_NODES),
            waiting=_bounded(head.waiting, _MOST_NODES),
            passed=head.passed,
        ),
        unsettled=from_rows(notes.unsettled)[:MOST_UNSETTLED],
        released_at=_instant(notes.released_at),
    )


def _single(record: dict[str, Any]) -> Entry:
    """The entry of the single owner at the top level of kured's JSON, without the lock's own fields: careen would write
    them back as fields of an unreadable entry."""
    return _entry({key: value for key, value in record.items() if key not in _OF_THE_LOCK})


def _numbered(entries: list[Entry]) -> list[Entry]:
    """With the made-up names `unreadable entry 1`, `unreadable entry 2` …"""
    numbers = itertools.count(1)
    return [replace(entry, node=f"{UNREADABLE} {next(numbers)}") if entry.is_nameless else entry for entry in entries]


def _entry(row: Any) -> Entry:
    """The entry with the readable fields of a row of `locks`, and the defaults of the others."""
    claim, unreadable = fields_of(row, _Claim)
    notes, _ = fields_of(row, _Notes)
    return Entry(
        node=claim.node or UNREADABLE,
        id=claim.id,
        uid=claim.uid,
        groups=claim.groups,
        boot=claim.boot,
        cordoned=bool(claim.metadata.get("unschedulable")) if claim.cordoned is None else claim.cordoned,
        created=claim.created,
        limit=_bounded(claim.limit, _MOST_CLAIMS),
        zone=claim.zone,
        failed="unreadable" if "failed" in unreadable else claim.failed,  # an unreadable mark of failure still is one
        due=_instant(notes.due),
        overdue=notes.overdue if notes.overdue is not None and _instant(notes.overdue.since) else None,
        unread="" if claim.node and not unreadable else json.dumps(row, separators=(",", ":")),
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


class _Notes(Value, kw_only=True, rename="camel"):
    """The optional fields of the lock and its entries: a value of another type counts as missing."""

    due: Instant = ""
    overdue: Overdue | None = None
    released_at: Instant = ""
    unsettled: tuple[Any, ...] = ()


_OF_THE_LOCK = frozenset({*_Head.__struct_encode_fields__, "releasedAt", "unsettled"} - {"nodeID"})


def render(content: LockContent) -> str | None:
    """The annotation's text; None (no annotation) for a lock without claims, pause, named nodes, unsettled workloads
    and `released_at`."""
    is_kept = bool(content.unsettled or content.released_at)
    if not content.entries and not content.is_paused and not content.line.names and not is_kept:
        return None
    first = content.entries[0] if content.entries else None
    owner = MANUAL if content.is_paused else "" if first is None else UNREADABLE if first.is_nameless else first.node
    rows = [_row(entry) for entry in content.entries]
    if content.is_paused:
        # A kured with concurrency > 1 reads only `locks` and would start during a pause; a full list stops it.
        rows += [_pause_row()] * max(1, min(content.max_owners, _MOST_CLAIMS) - len(rows))
    record: dict[str, Any] = {
        "nodeID": owner,
        "metadata": {"unschedulable": bool(first and first.cordoned)},
        "created": (first.created if first else content.line.at or content.released_at) or _EPOCH,
        "TTL": 0 if first or content.is_paused else _HANDOVER_TTL_NANOSECONDS,
        "maxOwners": min(max(content.max_owners, 1), _MOST_CLAIMS),
        "locks": rows,
    }
    if content.pause_reason:
        record["reason"] = content.pause_reason
    record |= _line_record(content.line)
    if content.unsettled:
        record["unsettled"] = rows_of(content.unsettled[:MOST_UNSETTLED])
    if content.released_at:
        record["releasedAt"] = content.released_at
    return json.dumps(record, separators=(",", ":"))


def _line_record(line: Line) -> dict[str, Any]:
    named = {"next": list(line.names), "nextAt": line.at} if line.names else {}
    return {
        **named,
        **({"abreast": line.abreast} if line.names and line.abreast is not None else {}),
        **({"waiting": line.waiting} if line.waiting else {}),
        **({"passed": list(line.passed)} if line.passed else {}),
    }


def _row(entry: Entry) -> Any:
    if entry.unread:
        return json_of(entry.unread)
    return {
        "nodeID": entry.node,
        "metadata": {"unschedulable": entry.cordoned},
        "created": entry.created or _EPOCH,
        "TTL": 0,
        "id": entry.id,
        "uid": entry.uid,
        "groups": list(entry.groups),
        "boot": entry.boot,
        "cordoned": entry.cordoned,
        "limit": entry.limit,
        **({} if entry.zone is None else {"zone": entry.zone}),
        **({"failed": entry.failed} if entry.failed else {}),
        **({"due": entry.due} if entry.due else {}),
        **({"overdue": {"phase": entry.overdue.phase, "since": entry.overdue.since}} if entry.overdue else {}),
    }


def _pause_row() -> dict[str, Any]:
    return {"nodeID": MANUAL, "metadata": {"unschedulable": False}, "created": _EPOCH, "TTL": 0}
