"""The content of the lock: the claims, the pause, the line. No claim ever expires. The text of the lock is in
`notation.py`, its changes in `changes.py`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from careen.core.facts.progress import OwnerHealth
from careen.core.lock.line import Line
from scheduler_core.values import Value, replace_value

UNREADABLE = "unreadable entry"
"""The node name in an entry whose real node name cannot be read. It contains a space, so no Node can have this name."""

MOST_CLAIMS = 800
"""About as many usual claims, of 330 characters each, as the 256 KiB of an object's annotations can contain."""
_CLAIMS_ROOM = 184 * 1024
"""So many characters of these 256 KiB the claims may fill. The rest is for their marks, the line, a pause, claims that
must be put back, and the other annotations of the DaemonSet."""
_EMPTY_ROW = 160  # characters of an entry without values

Instant = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z:.+-]*\Z", max_length=40)]  # longer than one to the microsecond
_Phase = Annotated[str, Meta(pattern=r"\A[A-Za-z]*\Z", max_length=20)]  # more letters than any phase has


class Overdue(Value, kw_only=True):
    """A mark on a claim, set by the agents of other nodes; see `overdue.py`."""

    phase: _Phase  # the phase of the holder's Node; empty: the Node does not exist or has another UID
    since: Instant  # RFC 3339

    @property
    def is_gone(self) -> bool:
        """Whether the Node of the claim no longer exists, or was recreated with another UID."""
        return not self.phase


class Entry(Value, kw_only=True):
    """One node's claim. Entries that kured wrote have no id, uid, groups, boot or zone."""

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
    due: str = ""  # RFC 3339, by the API server's clock: when a node back in service expects to release the claim
    overdue: Overdue | None = None
    unread: str = ""  # the beginning of the original entry, for people, if not all of it could be read

    @property
    def is_nameless(self) -> bool:
        """Whether the node's name cannot be read. Then `node` is a made-up name with a number, and there is no Node to
        check."""
        return self.node.startswith(UNREADABLE)


class LockContent(Value, kw_only=True):
    """The parsed content of the lock."""

    entries: tuple[Entry, ...] = ()
    max_owners: int = 0  # the recorded limit; 0: none recorded
    is_paused: bool = False
    pause_reason: str = ""
    line: Line = Line()
    unsettled: tuple[OwnerHealth, ...] = ()  # as healthy as before the drain after which they did not recover
    released_at: str = ""  # RFC 3339, by the API server's clock: the last time that a rebooted node released its claim

    @property
    def holders(self) -> tuple[str, ...]:
        """The names of the holders, each once, in the order of their claims."""
        return tuple(dict.fromkeys(entry.node for entry in self.entries))

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The claims that nodes kept after a failure: with such a claim, no other node takes one."""
        return tuple(entry for entry in self.entries if entry.failed)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the holders, except names that cannot be read."""
        return tuple(dict.fromkeys(entry.node for entry in self.entries if not entry.is_nameless))

    def with_line(self, line: Line) -> LockContent:
        """The content with this line."""
        return replace_value(self, line=line)

    def entry(self, node: str, claim: str) -> Entry | None:
        """The node's entry with this claim id, if any."""
        return next((each for each in self.entries if each.node == node and each.id == claim), None)

    def entries_of(self, node: str) -> tuple[Entry, ...]:
        """Every entry of one node: several only after a person edited the lock."""
        return tuple(each for each in self.entries if each.node == node)


class Garbage(Value):
    """A lock whose content cannot be understood. It may have held claims, so no node may begin its drain."""

    why: str


def limit(content: LockContent, concurrency: int) -> int:
    """How many nodes may hold a claim now: the concurrency, a smaller limit that one of the claims records, or as many
    as the annotation can contain. A full lock allows the present holders and no more."""
    recorded = [entry.limit or content.max_owners or 1 for entry in content.entries]
    is_full = sum(map(_size, content.entries)) >= _CLAIMS_ROOM
    return min([concurrency, *recorded, len(content.holders) if is_full else MOST_CLAIMS])


def _size(entry: Entry) -> int:
    """About how many characters the entry takes in the lock."""
    texts = (entry.node, entry.id, entry.uid, entry.boot, entry.created, entry.zone or "", entry.failed, *entry.groups)
    return _EMPTY_ROW + sum(map(len, texts)) + 3 * len(entry.groups) + 3 * len(entry.unread)  # escaped: up to 3 each


def free_slots(content: LockContent, concurrency: int) -> int:
    """How many more nodes may take a claim now: none while the lock is paused or has the claim of a failed node."""
    return 0 if content.is_paused or content.failed else slots_beside_holders(content, concurrency)


def slots_beside_holders(content: LockContent, concurrency: int) -> int:
    """How many claims the limit leaves free, whether or not a node may take one now (`free_slots`)."""
    return max(0, limit(content, concurrency) - len(content.holders))


def zones_at_work(content: LockContent) -> frozenset[str | None]:
    """The zones of the holders; None stands for an unknown zone."""
    return frozenset(entry.zone for entry in content.entries)


def confirms(content: LockContent | Garbage, node: str, claim: str) -> bool:
    """Whether the lock has the node's claim and is not paused: the last check before a reboot."""
    return isinstance(content, LockContent) and not content.is_paused and content.entry(node, claim) is not None
