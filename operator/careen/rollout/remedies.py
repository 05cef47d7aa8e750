"""The remedy of a cause, only where it can help in this case."""

from __future__ import annotations

from collections.abc import Sequence

from careen.core.decision import Refusal
from careen.core.drain.forecast_objection import ROOM
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.gates.gate_annotations import ON_THE_DAEMON_SET
from scheduler_core.sentences import first_few

_ANNOTATION, _BUDGET = "annotation ", "budget "


def remedy_of(refusal: Refusal, subject: str, node: str) -> str:
    """First what a simulation has proven for the node, then the general remedy of the code. `node` is the refused
    node, or NODE if the cause holds several."""
    if refusal.remedy:
        return as_sentence(refusal.remedy)
    return general(refusal, subject).replace("NODE", node)


def as_sentence(remedy: str) -> str:
    """With a capital letter and a period."""
    return f"{remedy[:1].upper()}{remedy[1:].rstrip('.')}."


def general(refusal: Refusal, subject: str = "") -> str:
    """The remedy of the code for one of the refusal's subjects, or for all of them. That of a forecast depends on what
    the forecast found: room for pods does not help a pod that can never be evicted, and permitting pending pods does
    not either."""
    code = refusal.code
    if code is Code.HALTED and refusal.remedy:  # it names the failed node
        return ""
    about = (subject,) if subject else refusal.about
    if code is Code.GATE_ANNOTATION:
        found = [each.removeprefix(_ANNOTATION) for each in about if each.startswith(_ANNOTATION)]
        named = " ".join(f"{each.removesuffix(ON_THE_DAEMON_SET)}-" for each in found)
        return code.remedy.replace(f"{keys.GATE_PREFIX}NAME-", named) if named else code.remedy
    if code is not Code.FORECAST_REFUSES:
        return code.remedy
    parts = []
    if budgets := [each.removeprefix(_BUDGET) for each in about if each.startswith(_BUDGET)]:
        what = "the disruption budget" if len(budgets) == 1 else "the disruption budgets"
        parts.append(f"Raise maxUnavailable or lower minAvailable of {what} {first_few(budgets)}, or add a replica.")
    if ROOM in about:
        accept = (
            f", or accept the pending pods with --forecast-pending-allowed={refusal.lacks}" if refusal.lacks else ""
        )
        parts.append(f"Add capacity (`careen forecast NODE --with-nodes NODE=1` says how much helps){accept}.")
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
