"""The refusals on a Node with their data, also where an earlier release wrote only a sentence: agents of two releases
run at once while a DaemonSet is updated."""

from __future__ import annotations

import re

from careen.core.decision import Refusal, stored_refusals
from careen.core.drain.forecast_objection import ROOM
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.gates.gate_annotations import ON_THE_DAEMON_SET
from scheduler_core.values import replace_value as replace

_BUDGET = re.compile(r"disruption budget (?:of )?([a-z0-9.-]+/[a-z0-9.-]+)")
_GROUP = re.compile(r"the budget (\S+) allows (\d+)")
_LIMIT = re.compile(r"the limit is (\d+)")
_DOWN = re.compile(
    r"(?:^|[;,:] | and )([a-z0-9][a-z0-9.-]*) (?:is not ready|is (?:still )?cordoned|was taken down|holds? a claim)"
)
_AGAIN = re.compile(r"its next reboot may begin at (\S+)")
_HOMELESS = re.compile(r"(\d+) of \d+ pods would not find room")
_HALT = "so the roll-out halts: "


def refusals_of(node: NodeView) -> tuple[Refusal, ...]:
    """The refusals on the Node."""
    return tuple(completed(each) for each in stored_refusals(node))


def completed(refusal: Refusal) -> Refusal:
    """The refusal with what this release writes as data."""
    match refusal.code:
        case Code.NODES_DOWN | Code.BUDGET_SPENT if not refusal.lacks:
            return _with_nodes(refusal)
        case Code.MINIMUM_INTERVAL if refusal.ends is None and (at := _AGAIN.search(refusal.sentence)):
            return replace(refusal, ends=from_rfc3339(at[1].rstrip(".")))
        case Code.HALTED if _HALT in refusal.sentence:
            sentence, _, remedy = refusal.sentence.partition(": ")
            return replace(refusal, sentence=sentence, remedy=remedy)
        case Code.GATE_ANNOTATION if not any(each.endswith(ON_THE_DAEMON_SET) for each in refusal.about):
            where = ON_THE_DAEMON_SET if "for the whole cluster" in refusal.sentence else ""
            return replace(refusal, about=tuple(f"{each}{where}" for each in refusal.about))
        case Code.ALERT if not refusal.about:
            names = refusal.sentence.partition(": ")[2].replace(" and ", ", ").split(", ")
            return replace(refusal, about=tuple(f"alert {name}" for name in names if name))
        case Code.FORECAST_REFUSES | Code.EVICTION_REFUSED if not refusal.lacks:
            return _with_pods(refusal)
        case _:
            return refusal


def _with_nodes(refusal: Refusal) -> Refusal:
    sentence = refusal.sentence
    told = tuple(each.removeprefix("node ") for each in refusal.about if each.startswith("node "))
    down = told or tuple(dict.fromkeys(_DOWN.findall(sentence)))
    group, limit = _GROUP.search(sentence), _LIMIT.search(sentence)
    about = refusal.about or ((f"budget {group[1]}",) if group and refusal.code is Code.BUDGET_SPENT else ())
    most = limit[1] if limit else group[2] if group else ""
    lacks = len(down) + 1 - int(most) if most and " more" not in sentence else len(down)
    return replace(refusal, about=about, down=down, lacks=max(1, lacks) if down else 0)


def _with_pods(refusal: Refusal) -> Refusal:
    budgets = [f"budget {name.rstrip('.')}" for name in _BUDGET.findall(refusal.sentence)]
    homeless = _HOMELESS.search(refusal.sentence)
    about = refusal.about or (*dict.fromkeys(budgets), *((ROOM,) if homeless else ()))
    return replace(refusal, about=about, lacks=int(homeless[1]) if homeless else 0)
