"""The remedy of a cause, only where it can help in this case."""

from __future__ import annotations

import re
from collections.abc import Sequence

from careen.core.decision import Refusal
from careen.core.drain.forecast_objection import ROOM
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from scheduler_core.sentences import first_few

_SAYS_REMEDY = "run `careen retry "  # the sentence says more than the code: it names the node
_ANNOTATION = "annotation "
_NEVER = "can never be evicted"
_PENDING = re.compile(r"(\d+) of \d+ pods would not find room")


def remedy_of(refusal: Refusal, subject: str, node: str) -> str:
    """First what a simulation has proven for the node, then the general remedy of the code. `node` is the refused
    node, or NODE if the cause holds several."""
    if refusal.remedy:
        return f"{refusal.remedy.rstrip('.')}."
    return general(refusal.code, refusal.sentence, subject).replace("NODE", node)


def general(code: Code, sentence: str, subject: str = "") -> str:
    """The remedy of the code. That of a forecast depends on what the forecast found: room for pods does not help a pod
    that can never be evicted, and permitting pending pods does not either."""
    if code is Code.HALTED and _SAYS_REMEDY in sentence:
        return ""
    if code is Code.GATE_ANNOTATION and subject.startswith(_ANNOTATION):
        return code.remedy.replace(f"{keys.GATE_PREFIX}NAME-", f"{subject.removeprefix(_ANNOTATION)}-")
    if code is not Code.FORECAST_REFUSES:
        return code.remedy
    parts = []
    if subject.startswith("budget ") or (_NEVER in sentence and subject != ROOM):
        name = subject.removeprefix("budget ")
        which = f"the disruption budget {name}" if name and name != subject else "the named budget"
        parts.append(f"Raise maxUnavailable or lower minAvailable of {which}, or add a replica.")
    if pending := _PENDING.search(sentence):
        parts.append(
            f"Add capacity (`careen forecast NODE --with-nodes NODE=1` says how much helps), or accept the pending "
            f"pods with --forecast-pending-allowed={pending[1]}."
        )
    return " ".join(parts) or "`careen forecast NODE` shows the pods and what would help."


def for_holders(stuck: Sequence[NodeView]) -> tuple[str, ...]:
    """What a person does about holders without progress."""
    unreadable = [node.name for node in stuck if isinstance(node.record, UnreadableProgress)]
    dead = [node.name for node in stuck if node.name not in unreadable]
    return (
        *(
            f"Look at the host of {first_few(dead)}. Only if it is down for good: `careen lock release {name}`."
            for name in dead[:1]
        ),
        *(Code.PROGRESS_UNREADABLE.remedy.replace("NODE", name) for name in unreadable[:1]),
    )
