"""Refuses while another node has failed and keeps its claim: the next one would only do the same.

Asked before the cordon. Nodes that drain already finish what they have begun: their pods have moved.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, Unforeseen, When, nothing
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def ask(situation: Situation, _when: When) -> Refusal | None:
    """The lock tells: whoever fails marks its own entry. A lock that is not understood is refused by the gate
    `hold`."""
    content = situation.lock
    sentence = halted_because(content, besides=situation.node.name) if isinstance(content, LockContent) else ""
    return Refusal(gate=GATE.name, code=Code.HALTED, sentence=sentence) if sentence else None


def halted_because(content: LockContent, *, besides: str = "") -> str:
    """Who failed and what to do about it, in one sentence; empty when nobody else than `besides` did."""
    failed = [entry for entry in content.failed if entry.node != besides]
    if not failed:
        return ""
    told = first_few([f"{entry.node} failed ({entry.failed})" for entry in failed])
    name = failed[0].node
    keeps = "keeps its claim" if len(failed) == 1 else "keep their claims"
    return (
        f"{told} and {keeps}, so the roll-out halts: mend what is wrong and `careen retry {name}`, "
        f"or `careen lock release {name}`"
    )


GATE = Gate(
    name="halt",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=nothing,
    foresight=Unforeseen("nodes that fail"),
)
