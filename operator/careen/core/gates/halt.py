"""Refuses while a failed node keeps its claim: the next node would probably fail too.

Asked only before the cordon: a drain that has begun goes on, because it may already have evicted pods.
"""

from __future__ import annotations

from careen.core.facts.reasons import Code
from careen.core.gates.question import BEFORE_THE_CORDON, Cost, No, gate
from careen.core.lock.content import LockContent
from careen.core.situation import Situation
from scheduler_core.sentences import first_few


@gate("halt", when=BEFORE_THE_CORDON, cost=Cost.CHEAP)
def halt(situation: Situation) -> No | None:
    content = situation.lock  # the gate `hold` refuses a lock that cannot be read
    return halted(content, besides=situation.node.name) if isinstance(content, LockContent) else None


def halted(content: LockContent, *, besides: str = "") -> No | None:
    """The answer about the claims that are marked as failed, except that of the node `besides`."""
    sentence = halted_because(content, besides=besides)
    if not sentence:
        return None
    about = tuple(f"failed node {entry.node}" for entry in content.failed if entry.node != besides)
    return No(Code.HALTED, sentence, halt_remedy(content, besides=besides), about=about)


def halted_because(content: LockContent, *, besides: str = "") -> str:
    """A sentence about the claims that are marked as failed, except that of the node `besides`; "" if there is no such
    claim."""
    failed = [entry for entry in content.failed if entry.node != besides]
    if not failed:
        return ""
    failures = first_few([f"{entry.node} failed ({entry.failed})" for entry in failed])
    keep = "keeps its claim" if len(failed) == 1 else "keep their claims"
    return f"{failures} and {keep}, so the roll-out halts"


def halt_remedy(content: LockContent, *, besides: str = "") -> str:
    """What a person does about the first failed node."""
    name = next(entry.node for entry in content.failed if entry.node != besides)
    return f"repair {name} and run `careen retry {name}`, or run `careen lock release {name}`"
