"""This gate refuses to let the node begin its drain while another node has failed and keeps its claim, because the next
node would probably fail too.

The agent evaluates this gate only before the cordon. A node that is already being drained goes on, because some of its
pods may already have been evicted.
"""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, Gate, When, nothing
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if a claim in the lock is marked as failed. If the lock cannot be read, the gate `hold` refuses,
    not this one."""
    content = situation.lock
    sentence = halted_because(content, besides=situation.node.name) if isinstance(content, LockContent) else ""
    return Refusal(gate=GATE.name, code=Code.HALTED, sentence=sentence) if sentence else None


def halted_because(content: LockContent, *, besides: str = "") -> str:
    """Return a sentence that names the nodes whose claims in the lock are marked as failed, except the node `besides`,
    and says what a person can do. Return an empty text if no such claim is marked as failed."""
    failed = [entry for entry in content.failed if entry.node != besides]
    if not failed:
        return ""
    failures = first_few([f"{entry.node} failed ({entry.failed})" for entry in failed])
    name = failed[0].node
    remedy = f"repair the node and run `careen retry {name}`, or run `careen lock release {name}`"
    if len(failed) == 1:
        return f"{failures} and keeps its claim, so the roll-out halts: {remedy}"
    return f"{failures} and keep their claims, so the roll-out halts: {remedy}"


GATE = Gate(
    name="halt",
    ask=ask,
    when=BEFORE_THE_CORDON,
    cost=Cost.CHEAP,
    needs=nothing,
)
