"""Parses, renders and changes the content of the lock: claims, pause, the line of waiting nodes.

The lock is JSON in an annotation of the DaemonSet. `parse` reads both of kured's forms: a single owner at the top
level, or `maxOwners` and `locks` (pkg/daemonsetlock/daemonsetlock.go at kured 1.17 to 1.23). `render` writes both forms
at once, so that a kured that reads either form sees the lock as held. No claim ever expires. `ghosts.py` finds claims
that provably have no holder, that is, no node that still works under the claim.

Anyone may have written the lock. An entry that cannot be read in full is still a claim: the limit includes it, and
careen writes it back unchanged. Only a person or the node that holds the claim replaces the entry. The lock is
`Garbage` only if it cannot be read as a whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta, field

from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import fields_of, json_of, short, shown
from careen.core.lock.line import Line
from scheduler_core.values import Value, replace_value

_UNREADABLE = "unreadable entry"
"""The node name in an entry whose real node name cannot be read. It contains a space, so no Node can have this name."""
MANUAL = "manual"
"""The owner that a person writes into kured's lock to stop all reboots, as kured documents. careen reads this owner as
a pause in both of kured's forms of the lock."""

_MOST_NODES = 100_000
"""More nodes than any cluster has. The number of waiting nodes that the lock records is at most this, because the
agents compute pauses from it."""
_MOST_CLAIMS = 1000
"""The greatest number of claims that the lock records as its limit, and the most rows that fill the list `locks` of a
paused lock: each row takes about a hundred bytes of the 256 KiB that an object's annotations may have."""
_HANDOVER_TTL_NANOSECONDS = 600 * 10**9
"""The TTL of a lock that names waiting nodes but contains no claim; kured too leaves a lock without an owner (`locks:
[]`). Without the TTL, a kured that is installed later would wait for ever for the empty owner."""

_NodeName = Annotated[
    str, Meta(pattern=r"\A(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
]
"""The pattern of Node names: a DNS subdomain (apimachinery's IsDNS1123Subdomain). Any other text could change the path
of a request."""
_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Phase = Annotated[str, Meta(max_length=20)]  # more letters than any phase has
_Instant = Annotated[str, Meta(max_length=40)]  # more letters than any instant to the microsecond has


class Overdue(Value, kw_only=True):
    """A mark on a claim in the lock: the node that holds the claim takes longer than usual. The agents of other nodes
    set the mark; see `overdue.py`."""

    phase: _Phase  # the phase of the holder's Node; empty: the Node does not exist or has another UID
    since: _Instant  # RFC 3339

    @property
    def is_gone(self) -> bool:
        """Whether the mark says that the Node of the claim no longer exists, or was recreated with another UID."""
        return not self.phase


class Entry(Value, kw_only=True):
    """One node's claim in the lock. Entries that kured wrote have no id, uid, groups, boot or zone."""

    node: str
    id: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    boot: str = ""  # the boot that the reboot under this claim ends
    cordoned: bool = False  # the node was cordoned before the claim; kured's metadata.unschedulable
    created: str = ""  # RFC 3339, for people
    limit: int = 0  # the concurrency of its writer; 0: unknown (kured's)
    zone: str | None = None  # the node's zone, empty if it has none; None: unknown
    failed: str = ""  # the reason code of a failure after which the node kept its claim: no other node may start
    due: str = (
        ""  # RFC 3339, by the API server's clock: when a node that is back in service expects to release the claim
    )
    overdue: Overdue | None = None  # set by the agents of other nodes: the holder takes longer than usual
    unread: str = ""  # the original entry if not all of it could be read; it is written back like this

    @property
    def is_nameless(self) -> bool:
        """Whether the name of the claim's node cannot be read. Then `node` is a made-up name with a number, and there
        is no Node to check."""
        return self.node.startswith(_UNREADABLE)


class LockContent(Value, kw_only=True):
    """The parsed content of the lock."""

    entries: tuple[Entry, ...] = ()
    max_owners: int = 0  # the recorded limit; 0: none recorded
    is_paused: bool = False
    pause_reason: str = ""
    line: Line = Line()
    released_at: str = ""  # RFC 3339, by the API server's clock: the last time that a rebooted node released its claim

    @property
    def holders(self) -> tuple[str, ...]:
        """The names of the nodes that hold claims, each once, in the order of their claims."""
        return tuple(dict.fromkeys(entry.node for entry in self.entries))

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The claims that nodes kept after a failure. While the lock has such a claim, no other node takes a claim."""
        return tuple(entry for entry in self.entries if entry.failed)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that hold claims, except names that cannot be read."""
        return tuple(dict.fromkeys(entry.node for entry in self.entries if not entry.is_nameless))

    def with_line(self, line: Line) -> LockContent:
        """Return the content with this line of waiting nodes."""
        return replace_value(self, line=line)

    def entry(self, node: str, claim: str) -> Entry | None:
        """Return the entry of this node with this claim id; None if the lock has no such entry."""
        return next((each for each in self.entries if each.node == node and each.id == claim), None)

    def entries_of(self, node: str) -> tuple[Entry, ...]:
        """Return every entry of one node in the lock. A node has several entries only after a person edited the
        lock."""
        return tuple(each for each in self.entries if each.node == node)


class Garbage(Value):
    """A lock whose content cannot be understood. The lock may have held claims, so no node may begin its drain, and the
    agents report that the lock is unreadable."""

    why: str


def parse(content: str | None) -> LockContent | Garbage:
    """Return the content of the lock annotation. None and blank text are an empty lock."""
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


def render(content: LockContent) -> str | None:
    """Return the lock annotation's text for this content. Return None (no annotation) for a lock without claims, pause,
    named nodes and `released_at`."""
    if not content.entries and not content.is_paused and not content.line.names and not content.released_at:
        return None
    first = content.entries[0] if content.entries else None
    owner = MANUAL if content.is_paused else "" if first is None else _UNREADABLE if first.is_nameless else first.node
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


def limit(content: LockContent, concurrency: int) -> int:
    """Return how many nodes may hold a claim now: the concurrency, or a smaller limit that is recorded in one of the
    claims."""
    recorded = [entry.limit or content.max_owners or 1 for entry in content.entries]
    return min([concurrency, *recorded])


def free_slots(content: LockContent, concurrency: int) -> int:
    """Return how many more nodes may take a claim now. Return 0 while the lock is paused or contains the claim of a
    failed node."""
    return 0 if content.is_paused or content.failed else slots_beside_holders(content, concurrency)


def slots_beside_holders(content: LockContent, concurrency: int) -> int:
    """Return how many claims the limit leaves free: the limit minus the number of nodes that hold claims. Ignore that
    no node may take a claim while the lock is paused or contains the claim of a failed node."""
    return max(0, limit(content, concurrency) - len(content.holders))


def zones_at_work(content: LockContent) -> frozenset[str | None]:
    """Return the zones of the nodes that hold claims. None in the set stands for an unknown zone."""
    return frozenset(entry.zone for entry in content.entries)


def add(content: LockContent, entry: Entry, concurrency: int, *, in_one_zone: bool = False) -> LockContent | None:
    """Return the content with one more claim. Return None if the lock is paused, contains the claim of a failed node,
    or is full. With `in_one_zone`, also return None if a node with a claim is in another or an unknown zone.

    The new entry replaces older entries of the same node.
    """
    others = _without_node(content, entry.node)
    if free_slots(others, concurrency) < 1 or (in_one_zone and not zones_at_work(others) <= {entry.zone}):
        return None
    entry = replace(entry, limit=concurrency)
    return replace(
        others,
        entries=(*others.entries, entry),
        max_owners=limit(others, concurrency),
        line=others.line.without(entry.node),
    )


def put_back(content: LockContent, entry: Entry, concurrency: int) -> LockContent:
    """Return the content with `entry` added again: the claim of a node that careen has taken down and whose claim is
    missing in the lock. The limit and a pause do not matter here, because the node *is* down."""
    others = _without_node(content, entry.node)
    return replace(
        others,
        entries=(*others.entries, replace(entry, limit=concurrency)),
        max_owners=limit(others, concurrency),
    )


def mark_due(content: LockContent, node: str, claim: str, due: str) -> LockContent:
    """Return the content in which this claim has the instant `due` (RFC 3339), at which the node expects to release the
    claim."""
    return _with(
        content,
        tuple(replace(each, due=due) if each.node == node and each.id == claim else each for each in content.entries),
    )


def mark_failed(content: LockContent, node: str, claim: str, code: str) -> LockContent:
    """Return the content in which this claim is marked as kept after a failure. The mark stays until the node releases
    the claim, even while the agent tries again."""
    return _with(
        content,
        tuple(
            replace(each, failed=code, overdue=None, unread="") if each.node == node and each.id == claim else each
            for each in content.entries
        ),
    )


def remove(content: LockContent, node: str, claim: str) -> LockContent:
    """Return the content without the entry of this node with this claim id. An empty id means the entry that kured
    wrote for the node, because such an entry has no id."""
    return _with(content, tuple(each for each in content.entries if not (each.node == node and each.id == claim)))


def remove_all(content: LockContent, ghosts: Collection[Entry]) -> LockContent:
    """Return the content without the given entries, which are claims without a holder."""
    return _with(content, tuple(each for each in content.entries if each not in ghosts))


def release_by_hand(content: LockContent, node: str) -> LockContent:
    """Return the content after every claim of this node is removed, for `careen lock release`."""
    return _without_node(content, node)


def released(content: LockContent, at: str) -> LockContent:
    """Return the content that records the instant `at` (RFC 3339) as the last release of a claim after a reboot."""
    return replace(content, released_at=at)


def pause(content: LockContent, reason: str, concurrency: int) -> LockContent:
    """Return the content of the paused lock: no node may begin its drain, and the claims stay. The recorded limit
    becomes at least `concurrency`. `render` fills the list `locks` of a paused lock up to the recorded limit with
    entries of the owner `manual`, so that a kured that allows several owners cannot add its own entry."""
    return replace(content, is_paused=True, pause_reason=short(reason), max_owners=max(content.max_owners, concurrency))


def resume(content: LockContent) -> LockContent:
    """Return the content without the pause."""
    return replace(content, is_paused=False, pause_reason="")


def confirms(content: LockContent | Garbage, node: str, claim: str) -> bool:
    """Whether the lock contains the node's claim and is not paused. This is the last check before a reboot."""
    return isinstance(content, LockContent) and not content.is_paused and content.entry(node, claim) is not None


_EPOCH = "1970-01-01T00:00:00Z"


def _without_node(content: LockContent, node: str) -> LockContent:
    return _with(content, tuple(each for each in content.entries if each.node != node))


def _with(content: LockContent, entries: tuple[Entry, ...]) -> LockContent:
    return replace(content, entries=entries)


class _Head(Value, kw_only=True, rename="camel"):
    """The fields of the lock whose values careen must understand; `_Claim` has the fields of the lock's entries. If a
    value has another type than the type here, the lock is `Garbage`."""

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
    """The fields of a lock entry whose values careen must understand. If a value has another type than the type here,
    the entry is unreadable."""

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
    """The optional fields of the lock's JSON. A field whose value has another type than the type here is treated as
    missing."""

    due: _Instant = ""
    overdue: Overdue | None = None
    released_at: _Instant = ""


_OF_THE_LOCK = frozenset({*_Head.__struct_encode_fields__, "releasedAt"} - {"nodeID"})


def _why(key: str, record: dict[str, Any]) -> str:
    is_list = key in ("next", "passed") and isinstance(record[key], list)
    return f"{key} in the lock is not a list of names" if is_list else f"{key} in the lock is {shown(record[key])}"


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
        released_at=_instant(notes.released_at),
    )


def _single(record: dict[str, Any]) -> Entry:
    """Return the entry of the single owner at the top level of kured's JSON. Leave out the lock's own fields, such as
    `maxOwners`. Otherwise, if the entry is unreadable, careen would write these fields back as fields of the entry."""
    return _entry({key: value for key, value in record.items() if key not in _OF_THE_LOCK})


def _numbered(entries: list[Entry]) -> list[Entry]:
    """Return the entries with a made-up node name in each entry whose node name cannot be read. The first such entry
    gets the name `unreadable entry 1`, the second gets the name `unreadable entry 2`, and so on."""
    numbers = itertools.count(1)
    return [replace(entry, node=f"{_UNREADABLE} {next(numbers)}") if entry.is_nameless else entry for entry in entries]


def _entry(row: Any) -> Entry:
    """Return an entry with the readable fields of a row of the list `locks` in the lock's JSON. The other fields get
    their defaults."""
    claim, unreadable = fields_of(row, _Claim)
    notes, _ = fields_of(row, _Notes)
    return Entry(
        node=claim.node or _UNREADABLE,
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
