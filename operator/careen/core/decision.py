"""What a step decides, and how the refusals of a decision are stored in an annotation of the Node.

A decision whose `wants` is not empty is provisional. The agent applies none of its actions, but reads the wanted facts
and decides again in the same turn. A fact that the agent cannot read becomes `Unknown`.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

from msgspec.structs import force_setattr

from careen.core.actions import Action
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import json_of, number, short, whole
from careen.core.plain_text import one_line
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace


class Reason(Value, kw_only=True):
    """Why the node is in its phase: a code for machines and a sentence for people, cleaned for display."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


_MOST_ABOUT = 8
_LONGEST_ABOUT = 140
_OF_CLUSTER = frozenset(
    {
        Code.PAUSED,
        Code.LOCK_UNKNOWN,
        Code.LOCK_GARBAGE,
        Code.FOREIGN_COORDINATOR,
        Code.NODES_DOWN,
        Code.ZONE_AT_WORK,
        Code.FLEET_UNKNOWN,
        Code.ALERT,
        Code.ALERTS_UNKNOWN,
    }
)


class Refusal(Value, kw_only=True):
    """A gate's answer that forbids the node's next step. Without `since`, `with_since` takes the instant from the
    refusals stored on the Node.

    `remedy` is for this node alone; the general remedy of a code is in `reasons.py`.

    `is_of_cluster`: the gate would refuse every other node as well, so the line does not change, and one message is
    enough for all. Always true for the codes in `_OF_CLUSTER`.

    `longest_seconds`: an alert fires if the refusal lasts longer. 0 means no alert.

    `about`: the things that a person can change, such as `budget shop/web`, `node n3`, `alert DiskFull`. Empty if the
    code says it all, or if an earlier release wrote the refusal.

    `down`: the nodes that are down; the gate refuses until `lacks` of them are in service again. In a refusal of the
    forecast, `lacks` is the number of pods without room. `ends`: when it ends by itself, if its gate knows that.
    """

    gate: str
    code: Code
    sentence: str
    since: datetime | None = None
    remedy: str = ""
    is_of_cluster: bool = False
    longest_seconds: float = 0.0
    about: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    lacks: int = 0
    ends: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("gate", "sentence", "remedy"):
            force_setattr(self, name, one_line(getattr(self, name)))
        force_setattr(self, "is_of_cluster", self.is_of_cluster or self.code in _OF_CLUSTER)
        for name in ("about", "down"):
            shown = tuple(one_line(each, _LONGEST_ABOUT) for each in getattr(self, name)[:_MOST_ABOUT])
            force_setattr(self, name, shown)


class Decision(Value, kw_only=True):
    """What the agent does in one turn. `phase` is the node's phase once all actions have succeeded."""

    phase: Phase
    reason: Reason
    memory: Memory
    look_again_seconds: float
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    wants: frozenset[Evidence] = frozenset()
    starts_soon: bool = False
    """Whether this node may begin its drain soon, so that the agent starts the process for forecasts in advance."""


_CODES = frozenset(Code)
_LONGEST_SECONDS = 10.0**10  # three hundred years
_MOST_REFUSALS = 50  # more than there are gates
_LONGEST_CODE = 40
_MOST_CODES = 8
_MOST_LACKS = 10**6
_MOST_SECONDS = 10**9


def stored_refusals(node: NodeView) -> tuple[Refusal, ...]:
    """The refusals on the Node, except those that cannot be read."""
    rows = json_of(node.annotations.get(keys.REFUSALS))
    return (
        tuple(refusal for row in rows[:_MOST_REFUSALS] if (refusal := _refusal(row))) if isinstance(rows, list) else ()
    )


def with_since(refusals: tuple[Refusal, ...], node: NodeView, now: datetime) -> tuple[Refusal, ...]:
    """The refusals, each with the instant since which its gate has refused for the same reason."""
    before = {(each.gate, each.code): each.since for each in stored_refusals(node)}
    return tuple(replace(each, since=each.since or before.get((each.gate, each.code)) or now) for each in refusals)


def refused_seconds(value: object) -> dict[str, int]:
    """For how many seconds each code refused, by an object of JSON; without what cannot be read, the longest first."""
    if not isinstance(value, dict):
        return {}
    known = [(short(str(code), _LONGEST_CODE), whole(each, _MOST_SECONDS)) for code, each in value.items()]
    ranked = sorted(((code, each) for code, each in known if each), key=lambda row: (-row[1], row[0]))
    return dict(ranked[:_MOST_CODES])


def ended_json(refusals: tuple[Refusal, ...], node: NodeView, now: datetime) -> str | None:
    """The value of the annotation that adds up how long each code refused, with the refusals on the Node that are not
    among these; None if none has ended."""
    still = {(each.gate, each.code) for each in refusals}
    total = Counter(refused_seconds(json_of(node.annotations.get(keys.REFUSED))))
    before = dict(total)
    for each in stored_refusals(node):
        if each.since is not None and (each.gate, each.code) not in still:
            total[each.code.value] += max(0, round((now - each.since).total_seconds()))
    found = refused_seconds(dict(total))
    return json.dumps(found, separators=(",", ":")) if found != before else None


def refusals_json(refusals: tuple[Refusal, ...]) -> str | None:
    """The value of the annotation; None, its removal, without refusals."""
    rows = [
        {
            "gate": each.gate,
            "code": each.code.value,
            "sentence": each.sentence,
            "since": rfc3339(each.since) if each.since else None,
            **({"remedy": each.remedy} if each.remedy else {}),
            **({"longest": each.longest_seconds} if each.longest_seconds else {}),
            **({"ofCluster": True} if each.is_of_cluster else {}),
            **({"about": list(each.about)} if each.about else {}),
            **({"down": list(each.down)} if each.down else {}),
            **({"lacks": each.lacks} if each.lacks else {}),
            **({"ends": rfc3339(each.ends)} if each.ends else {}),
        }
        for each in refusals
    ]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False) if rows else None


def _refusal(row: object) -> Refusal | None:
    match row:
        case {"gate": str(gate), "code": str(code), "sentence": str(sentence), **more} if code in _CODES:
            since, remedy = from_rfc3339(more.get("since")), short(str(more.get("remedy") or ""))
            longest = number(more.get("longest"), _LONGEST_SECONDS) or 0.0
            return Refusal(
                gate=gate,
                code=Code(code),
                sentence=short(sentence),
                since=since,
                remedy=remedy,
                is_of_cluster=more.get("ofCluster") is True,
                about=_names(more.get("about")),
                down=_names(more.get("down")),
                lacks=whole(more.get("lacks"), _MOST_LACKS) or 0,
                ends=from_rfc3339(more.get("ends")),
                longest_seconds=longest,
            )
        case _:
            return None


def _names(value: object) -> tuple[str, ...]:
    rows = value[:_MOST_ABOUT] if isinstance(value, list) else []
    return tuple(short(each, _LONGEST_ABOUT) for each in rows if isinstance(each, str))
