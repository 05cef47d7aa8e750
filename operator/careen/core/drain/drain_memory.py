"""What a node remembers of its slow pods, in one annotation that only its own agent writes: how each controller's
budget or webhook opened, and how many drains were undone because it did not.

Only this node's agent decides by it, and only about slow pods: it never makes a pod slow. It has at most `MOST_KEYS`
controllers and `MOST_BYTES` bytes; of more, the oldest go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from msgspec import field

from careen.core.drain.refused_evictions import SlowPod
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import number, object_of, short, whole
from scheduler_core.simulation.forecast import Opens
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

MOST_KEYS = 20
MOST_BYTES = 4096
FIRST_PAUSE_SECONDS = 900.0  # doubles with each undone drain; an operator that was down is usually back by then
LAST_PAUSE_SECONDS = 86_400.0
MOST_UNDONE = 3  # in a row for one controller, and in a day for the whole node, whatever the cause
_DAY = timedelta(days=1)
_CLOCK = timedelta(minutes=5)  # an instant that is further in the future comes from a wrong clock
_LONGEST_SECONDS = 10.0**7
_LONGEST_TEXT = 320  # a kind, a namespace and a name


class KnownOwner(Value, kw_only=True):
    """What is known of one controller's slow pods."""

    owner_uid: str = ""
    revision: str = ""
    budget: str = ""
    webhook: str = ""
    opens: Opens = Opens.UNSEEN
    seconds: float = 0.0  # from the cordon until it opened
    undone: int = 0  # drains in a row
    at: datetime | None = None  # the last change of this row

    def fits(self, pod: SlowPod) -> bool:
        """Whether the same controller, budget and webhook are meant. Unknown fields do not count."""
        pairs = (
            (self.owner_uid, pod.owner_uid),
            (self.revision, pod.revision),
            (self.budget, pod.budget),
            (self.webhook, pod.webhook),
        )
        return all(one == other or not one or not other for one, other in pairs)


class UnderWay(Value, kw_only=True):
    """The drain under this claim has slow pods. `plain_after_seconds`: how long the other pods wait for them; None:
    until they have left."""

    claim: str
    owners: frozenset[str]  # digests of the controllers
    plain_after_seconds: float | None = None
    is_cut: bool = False  # there were more than MOST_KEYS


class DrainMemory(Value, kw_only=True):
    """The annotation's content. `undone` has the instants of the node's last undone drains, the newest last."""

    known: Mapping[str, KnownOwner] = field(default_factory=dict)  # by controller, such as "Cluster shop/pg"
    undone: tuple[datetime, ...] = ()
    under_way: UnderWay | None = None

    def of(self, pod: SlowPod) -> KnownOwner:
        """What is known of the pod's controller. After a change of the budget, the webhook or the controller, no drain
        counts as undone."""
        known = self.known.get(pod.owner, KnownOwner())
        return known if known.fits(pod) else replace(known, undone=0)

    def next_try(self, pods: Iterable[SlowPod], now: datetime) -> datetime | None:
        """When a drain with these slow pods may begin; None: now."""
        pods = tuple(pods)
        instants = [each for pod in pods if (each := self._next_try_of(pod, now)) is not None]
        if pods and (each := self.enough_until(now)):
            instants.append(each)
        later = [each for each in instants if each > now]
        return max(later, default=None)

    def enough_until(self, now: datetime) -> datetime | None:
        """Until when this node undid as many drains as it may within a day; None: it may try again."""
        lately = [each for each in self.undone if now - _DAY < each <= now + _CLOCK]
        return lately[-MOST_UNDONE] + _DAY if len(lately) >= MOST_UNDONE else None

    @property
    def day_ends(self) -> datetime | None:
        """When the day with as many undone drains as a day may have is over; None without so many."""
        return self.undone[-MOST_UNDONE] + _DAY if len(self.undone) >= MOST_UNDONE else None

    def with_undone(self, now: datetime) -> DrainMemory:
        """With one more undone drain."""
        return replace(self, undone=(*self.undone, now)[-MOST_UNDONE:])

    def _next_try_of(self, pod: SlowPod, now: datetime) -> datetime | None:
        known = self.of(pod)
        if not known.undone or known.at is None or known.at > now + _CLOCK:
            return None
        return known.at + timedelta(seconds=pause_seconds(known.undone, is_plain_denial=pod.is_plain_denial))


def pause_seconds(undone: int, *, is_plain_denial: bool = False) -> float:
    """The pause after so many undone drains: 15 minutes, then twice as long; a day after `MOST_UNDONE`, and after the
    first if a webhook denies a plain workload."""
    if undone >= MOST_UNDONE or is_plain_denial:
        return LAST_PAUSE_SECONDS
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (undone - 1), LAST_PAUSE_SECONDS)


def digest(owner: str) -> str:
    """A short text for a controller."""
    return blake2b(owner.encode(), digest_size=8).hexdigest()


def of(node: NodeView) -> DrainMemory:
    """The memory on this Node. What cannot be read counts as not remembered."""
    written = object_of(node.annotations.get(keys.DRAIN_MEMORY))
    rows, undone = written.get("known"), written.get("undone")
    known = {
        short(str(owner), _LONGEST_TEXT): _known(row)
        for owner, row in list(rows.items() if isinstance(rows, dict) else ())[:MOST_KEYS]
        if isinstance(row, dict)
    }
    instants = (from_rfc3339(each) for each in (undone if isinstance(undone, list) else ())[-MOST_UNDONE:])
    return DrainMemory(
        known=known, undone=tuple(each for each in instants if each is not None), under_way=_under_way(written)
    )


def _known(row: Mapping[str, Any]) -> KnownOwner:
    def text(name: str) -> str:
        value = row.get(name)
        return short(value, _LONGEST_TEXT) if isinstance(value, str) else ""

    opens = text("opens")
    return KnownOwner(
        owner_uid=text("owner"),
        revision=text("revision"),
        budget=text("budget"),
        webhook=text("webhook"),
        opens=Opens(opens) if opens in set(Opens) else Opens.UNSEEN,
        seconds=number(row.get("seconds"), _LONGEST_SECONDS) or 0.0,
        undone=whole(row.get("undone"), 10**6) or 0,
        at=from_rfc3339(row.get("at")),
    )


def _under_way(written: Mapping[str, Any]) -> UnderWay | None:
    match written.get("now"):
        case {"claim": str(claim), "owners": list(owners), **more} if claim:
            return UnderWay(
                claim=claim,
                owners=frozenset(each for each in owners[:MOST_KEYS] if isinstance(each, str)),
                plain_after_seconds=number(more.get("plainAfter"), _LONGEST_SECONDS),
                is_cut=more.get("cut") is True,
            )
        case _:
            return None


def to_annotation(memory: DrainMemory) -> str | None:
    """The annotation's text; None, its removal, if there is nothing to remember."""
    newest = sorted(memory.known.items(), key=lambda item: (_at(item[1]), item[0]), reverse=True)[:MOST_KEYS]
    while True:
        text = _rendered(replace(memory, known=dict(newest)))
        if text is None or len(text.encode()) <= MOST_BYTES:
            return text
        newest.pop()


def _at(known: KnownOwner) -> float:
    return known.at.timestamp() if known.at else 0.0


def _rendered(memory: DrainMemory) -> str | None:
    written: dict[str, Any] = {
        "known": {owner: _row(known) for owner, known in memory.known.items()},
        "undone": [rfc3339(each) for each in memory.undone[-MOST_UNDONE:]],
        "now": _now(memory.under_way) if memory.under_way else None,
    }
    kept = {name: value for name, value in written.items() if value}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False) if kept else None


def _now(under_way: UnderWay) -> dict[str, Any]:
    now = {
        "claim": under_way.claim,
        "owners": sorted(under_way.owners),
        "plainAfter": under_way.plain_after_seconds,
        "cut": under_way.is_cut or None,
    }
    return {name: value for name, value in now.items() if value is not None}


def _row(known: KnownOwner) -> dict[str, Any]:
    row = {
        "opens": known.opens.value,
        "seconds": round(known.seconds),
        "undone": known.undone,
        "owner": known.owner_uid,
        "revision": known.revision,
        "budget": known.budget,
        "webhook": known.webhook,
        "at": rfc3339(known.at) if known.at else "",
    }
    return {name: value for name, value in row.items() if value}


def patch(node: NodeView, memory: DrainMemory) -> dict[str, str | None]:
    """The change of the Node's annotations that stores this memory; {} without a change."""
    text = to_annotation(memory)
    return {} if node.annotations.get(keys.DRAIN_MEMORY) == text else {keys.DRAIN_MEMORY: text}


def forgiven(node: NodeView) -> dict[str, str | None]:
    """A person asked for another try: no drain counts as undone."""
    memory = of(node)
    known = {owner: replace(each, undone=0) for owner, each in memory.known.items()}
    return patch(node, replace(memory, known=known, undone=()))
